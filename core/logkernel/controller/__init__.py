"""The controller: cluster metadata as a pure machine. `controller` decides, `image` folds."""
