"""The interactive lessons: `antorcha lab`, and the course it opens with."""
