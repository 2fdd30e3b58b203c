"""The language server (extra ``lsp``): findings, fixes and pages of rules in editors.

Files are checked in a process of their own (`worker`), so that the loop that talks to the editor never
waits for a check; what is said to the editor is made from the same diagnostics that ``check`` prints.
"""
