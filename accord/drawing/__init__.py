"""Pages, themes and plots shared by reports, experiments and benchmarks."""
