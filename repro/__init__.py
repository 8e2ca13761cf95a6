"""The rooms of specrepro; docs/architecture.md says what each is for."""
