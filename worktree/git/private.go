package git

import "slices"

// Private returns the configuration of a run's private repository: the settings that affect files and commits, and more. It
// names no program except filters.
func (c Config) Private(format string, more ...Setting) Config {
	version := "0"
	if format != "sha1" {
		version = "1"
	}
	config := Config{{"core.repositoryformatversion", version}, {"core.bare", "false"}, {"core.logallrefupdates", "true"}}
	if format != "sha1" {
		config = append(config, Setting{"extensions.objectformat", format})
	}
	for _, s := range c {
		section, _, key := s.Split()
		if s.Plain() || section == "filter" && slices.Contains([]string{"clean", "smudge", "process", "required"}, key) {
			config = append(config, s)
		}
	}
	config = append(config, Setting{"gc.auto", "0"}, Setting{"maintenance.auto", "false"},
		// In the sandbox, a file's owner and inode may differ from those in the index that the host made.
		Setting{"core.checkstat", "minimal"}, Setting{"core.trustctime", "false"})
	return append(config, more...)
}

// Plain reports whether a setting affects files and commits and names neither a program nor a path.
func (s Setting) Plain() bool {
	return slices.Contains([]string{
		"core.autocrlf", "core.eol", "core.safecrlf", "core.filemode", "core.symlinks", "core.ignorecase",
		"core.precomposeunicode", "core.protecthfs", "core.protectntfs", "core.sparsecheckout", "core.sparsecheckoutcone",
		"core.quotepath", "core.abbrev", "core.whitespace", "core.commentchar", "core.bigfilethreshold",
		"i18n.commitencoding", "merge.conflictstyle", "diff.algorithm", "diff.renames",
	}, s.Name)
}
