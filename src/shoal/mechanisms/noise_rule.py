"""Where a kind of noise may be used: a configured method comes in, an error with the reason leaves, or nothing."""

from __future__ import annotations

from shoal.errors import OptionError
from shoal.method.method import Method
from shoal.method.models import privacy_model
from shoal.noise.families import NOISES


def noise_allowed(method: Method, attributes: int) -> None:
    """Refuse noise that would not keep the claim of the method on this many attributes.

    Guarantee:
        Staircase and box noise spend the whole ε of a block (the sums of one cluster) on any change of it, however
        small. They pass only where a record touches a single block of each attribute group: clusters of one record,
        and clusters that the claim takes as fixed; or where every block has an ε of its own and the budget pays for all
        of them: insensitive clusters. Laplace noise is measured in L1 norm over all blocks
        and always passes.

    Raises:
        OptionError: with the reason.

    Reference:
        docs/proofs/staircase.md, sections 3 and 4.
    """
    if not NOISES[method.noise].blockwise or method.stability in ("record", "each"):
        return
    if method.stability == "private":
        raise OptionError(
            f"noise '{method.noise}' is not for method '{method.name}': a replaced record changes the counts of two "
            "boxes at several levels, and all of them share ε; use noise=laplace."
        )
    if privacy_model(method, attributes) == "dp":
        raise OptionError(
            f"noise '{method.noise}' cannot keep the claim of method '{method.name}' "
            f"{'on one column' if attributes == 1 else 'with link=False'}: a replaced record moves the sums of "
            "several rank groups a little, and each of them would cost the whole ε; use noise=laplace."
        )
