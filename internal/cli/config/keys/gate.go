package keys

// gateKeys returns the keys of the commands before, in and after a run, and of the gate.
func gateKeys() []Key {
	return []Key{
		{
			Name:  "before",
			Help:  "shell lines run on the host, on a checkout of the base, before the agent",
			Kind:  Lines,
			Check: checkLine,
			Shell: true,
			Guard: Changed,
			Use:   toMerge,
		},
		{
			Name:  "copy",
			Help:  "untracked files and folders copied into the worktree, such as .env",
			Kind:  Lines,
			Check: checkInside,
			Guard: Listed,
			Use:   toMerge | toRun,
		},
		{
			Name:  "setup",
			Help:  "shell lines run in the sandbox before the first iteration",
			Kind:  Lines,
			Check: checkLine,
			Shell: true,
			Guard: Ordinary,
			Use:   toMerge | toRun,
		},
		{
			Name:  "after",
			Help:  "shell lines run in the sandbox at the end of every run, successful or not; a failure is a warning",
			Kind:  Lines,
			Check: checkLine,
			Shell: true,
			Guard: Ordinary,
			Use:   toWork | toRun,
		},
		{
			Name:  "setup-inputs",
			Help:  "all files and folders that setup depends on: until one changes, setup runs once for all runs",
			Kind:  Lines,
			Check: checkInside,
			Guard: Ordinary,
			Use:   toMerge,
		},
		{
			Name:  "gate",
			Help:  "shell lines that must pass before a run may succeed",
			Kind:  Lines,
			Check: checkLine,
			Shell: true,
			Guard: Lacking,
			Use:   toMerge | toRun,
		},
		{
			Name:    "gate-on",
			Help:    "where the gate must pass: on a clean checkout of the commits, or only in the agent's worktree",
			Default: "checkout",
			Choices: []string{"checkout", "worktree"},
			Guard:   Looser,
			Beside:  byGate(),
			Levels:  [][]string{{"checkout"}, {"worktree"}},
			Use:     toMerge | toRun,
		},
		{
			Name:    "gate-files",
			Help:    "changed tests and scripts: report them; require that the gate passes without them; block them",
			Default: "report",
			Choices: []string{"report", "require", "block"},
			Guard:   Looser,
			Levels:  [][]string{{"block"}, {"require"}, {"report"}},
			Use:     toWork | toRun,
		},
		{
			Name:    "gate-canary",
			Help:    "check that the gate fails when ralph adds a failing test to a copy of the commits",
			Kind:    Bool,
			Default: true,
			Guard:   Looser,
			Beside:  byGate(),
			Levels:  [][]string{{"true"}, {"false"}},
			Use:     toMerge | toRun,
		},
	}
}

// evidenceKeys returns the keys of further evidence: tests of the change, and a review.
func evidenceKeys() []Key {
	return []Key{
		{
			Name:    "retest",
			Help:    "whether new and changed tests fail without the change and pass with it: report it, or require it",
			Default: "off",
			Choices: []string{"off", "report", "require"},
			Guard:   Looser,
			Levels:  [][]string{{"require"}, {"report"}, {"off"}},
			Use:     toWork,
		},
		{
			Name:  "retest-command",
			Help:  "shell line that runs tests; {files} stands for the test files; empty: by language (docs/proof.md)",
			Shell: true,
			Guard: Ordinary,
			Use:   toWork,
		},
		{
			Name:   "review",
			Help:   "AGENT or AGENT:MODEL that reviews commits that have passed the gate, preferably another model; empty: none",
			Agents: true,
			Guard:  Ordinary,
			Beside: byAgent(),
			Use:    toWork,
		},
		{
			Name:    "review-rounds",
			Help:    "times that findings of the review go back to the agent; after that the request is a draft",
			Kind:    Int,
			Default: 2,
			Guard:   Above,
			Use:     toWork,
		},
		{
			Name:  "review-command",
			Help:  "your own reviewer: program and arguments, like agent-command",
			Kind:  Words,
			Guard: Changed,
			Use:   toWork,
		},
	}
}
