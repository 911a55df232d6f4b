"""Cross-moment microaggregation: noise on moments of clusters, and rows drawn from the noisy moments."""
