"""Methods as data: settings, presets, what each promises, budgets, recipes and statements."""
