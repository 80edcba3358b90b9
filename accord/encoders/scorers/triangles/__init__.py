"""Triangle scorers: node representations in, one table of scores over triples of states for each triangle out."""

from accord.encoders.scorers.triangles._agreement import AgreementTriangles
from accord.encoders.scorers.triangles._low_rank import LowRankTriangles
from accord.encoders.scorers.triangles._scorer import TriangleScorer, TriangleScorerSpec, check_table_size

__all__ = ["AgreementTriangles", "LowRankTriangles", "TriangleScorer", "TriangleScorerSpec", "check_table_size"]
