"""Where the files of a version come from: a folder, a tag of a git repository, an archive."""
