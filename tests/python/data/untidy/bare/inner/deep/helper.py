from ...common import copy_into
