package git

import "slices"

// Private is the configuration of a run's private repository: what decides how files and commits look, and more. It names
// no program but filters.
func (c Config) Private(format string, more ...Setting) Config {
	version := "0"
	if format != "sha1" {
		version = "1"
	}
	own := Config{{"core.repositoryformatversion", version}, {"core.bare", "false"}, {"core.logallrefupdates", "true"}}
	if format != "sha1" {
		own = append(own, Setting{"extensions.objectformat", format})
	}
	for _, s := range c {
		section, _, key := s.Split()
		if s.Plain() || section == "filter" && slices.Contains([]string{"clean", "smudge", "process", "required"}, key) {
			own = append(own, s)
		}
	}
	own = append(own, Setting{"gc.auto", "0"}, Setting{"maintenance.auto", "false"},
		// Inside, owner and inode of a file need not be those of the index that the host made.
		Setting{"core.checkstat", "minimal"}, Setting{"core.trustctime", "false"})
	return append(own, more...)
}

// Plain reports a setting that decides what files and commits look like, and names neither a program nor a path.
func (s Setting) Plain() bool {
	return slices.Contains([]string{
		"core.autocrlf", "core.eol", "core.safecrlf", "core.filemode", "core.symlinks", "core.ignorecase",
		"core.precomposeunicode", "core.protecthfs", "core.protectntfs", "core.sparsecheckout", "core.sparsecheckoutcone",
		"core.quotepath", "core.abbrev", "core.whitespace", "core.commentchar", "core.bigfilethreshold",
		"i18n.commitencoding", "merge.conflictstyle", "diff.algorithm", "diff.renames",
	}, s.Name)
}
