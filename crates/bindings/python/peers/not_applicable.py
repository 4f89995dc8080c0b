"""The tests of other libraries that do not test their adapters: part of the name, and the reason."""

TESTS = {
    "ase": {},
    "matscipy": {},
    "vesin": {
        "test_numpy.py::test_sorting": "expects that pairs are not in order unless sorted=True",
    },
    "scipy": {
        "test_query_pairs_eps": "expects pairs beyond the radius, which eps allows but does not ask for",
        "test_kdtree_comparisons": "compares nodes of the tree, and there is no tree",
        "test_kdtree_weights": "asks for the weights of nodes, and there is no tree",
        "test_ckdtree_view": "asks for the nodes of the tree, and there is no tree",
        "test_kdtree_tree_access": "asks for the nodes of the tree, and there is no tree",
        "test_ckdtree_parallel": "expects an error where the number of cores is unknown",
        "test_kdtree_duplicated_inputs": "asks for the nodes of the tree, and there is no tree",
    },
    "freud": {},
    "mdanalysis": {},
    "torch_cluster": {},
}
