from package.sub.helpers import copy_into
