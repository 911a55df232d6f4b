"""Questions to a table that stays inside: queries as data, their exact prices, one noisy answer each."""
