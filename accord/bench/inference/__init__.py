"""`accord bench inference`: belief propagation against its peers."""
