"""The reference site: a page for each public namespace, and the guides, as static HTML.

``./run docs`` runs ``python -m tools.reference``. What the pages say is read from the live package:
op records, docstrings and samples. The parts, in the order in which a page is made::

    names        which names are public, and the page that each is described on
    docstrings   a docstring as HTML; its examples are run
    formulas     a record's function and derivatives as expressions; mathml writes them
    trials       a record's samples tried: dtypes, shapes, errors
    plots        the picture of a function of one real number
    entries      one name: all of the above
    pages        the pages of the namespaces, as Sphinx reads them
    guides       docs/, the examples and the course, with links that hold on the site
    sources      the files that pages link to, with numbered lines
    site         Sphinx: its settings, and the two languages
    check        every link, anchor and example of the finished site
"""
