"""Message passing in plain torch: the version that every other kernel is tested against."""
