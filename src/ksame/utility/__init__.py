"""What is left to use: loss, labels that can still be read, detection, pose and expression, diversity, and the POC."""

from ksame.utility.classifiers import Accuracy, LabelUtility, label_utility, require_classifiers
from ksame.utility.diversity import Diversity, diversity
from ksame.utility.geometry import MeshError, mean_mesh_error, mesh_error
from ksame.utility.loss import GroupLoss, Loss, loss_by_group, mean_loss, measure_loss
from ksame.utility.poc import PocCurve, PocPoint, poc

__all__ = [
    "Accuracy",
    "Diversity",
    "GroupLoss",
    "LabelUtility",
    "Loss",
    "MeshError",
    "PocCurve",
    "PocPoint",
    "diversity",
    "label_utility",
    "loss_by_group",
    "mean_loss",
    "mean_mesh_error",
    "measure_loss",
    "mesh_error",
    "poc",
    "require_classifiers",
]
