"""What only the rules about waits and copies between host and device ask."""
