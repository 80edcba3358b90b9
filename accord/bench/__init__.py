"""`accord bench`: speed measured on this machine."""
