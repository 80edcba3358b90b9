"""`accord bench`: the speed of inference and learning, measured on this machine."""
