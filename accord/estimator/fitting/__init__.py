"""What `fit` decides before it trains: settings, splits and columns, weights of labels, where to go on from."""
