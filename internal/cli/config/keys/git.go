package keys

import "github.com/ralph-pool/ralph/pool/publish"

// gitKeys returns the keys of the base, the branches, and the authorship of commits.
func gitKeys() []Key {
	return []Key{
		{
			Name:  "base",
			Help:  "branch, tag or commit runs start from; empty: the branch checked out, unless it is ralph's own",
			Check: checkArgument,
			Guard: Changed,
			Use:   toMerge,
		},
		{
			Name:    "branch-prefix",
			Help:    "prefix of branch names",
			Default: "ralph/",
			Check:   checkBranchPrefix,
			Guard:   Changed,
			Use:     toMerge,
		},
		{
			Name: "publish",
			Help: "how finished commits are published; auto: pr on a forge, else branch; " +
				"auto-merge: a pr that the forge merges once its checks pass",
			Default: "auto",
			Choices: []string{"auto", "auto-merge", "branch", "merge", "pr", "none"},
			Guard:   Looser,
			Bound:   true,
			Levels:  [][]string{{"none"}, {"branch"}, {"auto", "pr"}, {"auto-merge", "merge"}},
			Use:     toWork,
		},
		{
			Name:    "protected-paths",
			Help:    "paths that an agent's commits may not touch",
			Kind:    Lines,
			Default: publish.ProtectedPaths(),
			Guard:   Lacking,
			Bound:   true,
			Use:     toMerge,
		},
		{
			Name:  "commit-author",
			Help:  "author of the agent's commits, as Name <mail>; empty: a GitHub App's bot, else your git identity",
			Check: checkIdent,
			Guard: Changed,
			Use:   toMerge | toRun,
		},
		{
			Name:  "committer",
			Help:  "committer of the agent's commits; empty: commit-author",
			Check: checkIdent,
			Guard: Changed,
			Use:   toMerge | toRun,
		},
		{
			Name:  "sign-off",
			Help:  "add Signed-off-by: COMMITTER to the messages of the agent's commits",
			Kind:  Bool,
			Guard: Changed,
			Use:   toMerge | toRun,
		},
		{
			Name:  "co-authors",
			Help:  "add Co-authored-by: Name <mail> to the messages of the agent's commits",
			Kind:  Lines,
			Check: checkIdent,
			Guard: Changed,
			Use:   toMerge | toRun,
		},
		{
			Name:    "sign",
			Help:    "sign the agent's commits on the host with your git's signing settings: gpg or ssh; empty: no",
			Choices: []string{"gpg", "ssh"},
			Guard:   Changed,
			Use:     toMerge | toRun,
		},
		{
			Name:  "proof-key",
			Help:  "file of the ed25519 key that signs a proof of each success (docs/proof.md); empty: no proofs",
			Kind:  Path,
			Guard: Own,
			Use:   toMerge,
		},
	}
}

// requestKeys returns the keys of pull requests, and of their remote.
func requestKeys() []Key {
	return []Key{
		{
			Name:  "request-template",
			Help:  "body of pull requests; empty: the built-in one",
			Kind:  Path,
			Guard: Outside,
			Use:   toWork,
		},
		{
			Name:  "request-target",
			Help:  "branch that pull requests merge into; empty: the base",
			Check: checkArgument,
			Guard: Changed,
			Use:   toWork,
		},
		{
			Name:  "request-labels",
			Help:  "labels of pull requests",
			Kind:  Names,
			Check: checkLabel,
			Guard: Changed,
			Use:   toWork,
		},
		{
			Name:  "reviewers",
			Help:  "who is asked to review pull requests",
			Kind:  Names,
			Guard: Changed,
			Use:   toWork,
		},
		{
			Name:  "request-assignees",
			Help:  "who is assigned to pull requests",
			Kind:  Names,
			Guard: Changed,
			Use:   toWork,
		},
		{
			Name:    "max-rounds",
			Help:    "follow-up runs of one pull request; 0: none",
			Kind:    Int,
			Default: 3,
			Guard:   Above,
			Use:     toWork,
		},
		{
			Name:    "remote",
			Help:    "remote for claims and branches: auto (origin, if there is one), none, or a name",
			Default: "auto",
			Check:   checkRemote,
			Guard:   Changed,
			Use:     toFind,
		},
	}
}

// hostKeys returns the keys of the group "This host".
func hostKeys() []Key {
	return []Key{
		{
			Name:  "state-dir",
			Help:  "folder of ralph's state; empty: $XDG_STATE_HOME/ralph",
			Kind:  Path,
			Guard: Changed,
			Use:   toFind | toRun | toExec,
		},
		{
			Name: "layer-max-mb",
			Help: "disk in MiB for results of setup that runs share, " +
				"and as much again for shared checkouts; 0: none",
			Kind:    Int,
			Default: 4096,
			Guard:   Above,
			Bound:   true,
			Use:     toMerge,
		},
		{
			Name: "min-free-mb",
			Help: "minimum free disk space in MiB for state-dir and the git folder; " +
				"below it ralph stops the largest run and starts none; 0: no minimum",
			Kind:    Int,
			Default: 1024,
			Guard:   Below,
			Bound:   true,
			Use:     toMerge,
		},
		{
			Name:    "keep-runs",
			Help:    "runs per issue whose logs are kept",
			Kind:    Int,
			Default: 20,
			Min:     1,
			Guard:   Below,
			Bound:   true,
			Use:     toMerge,
		},
		{
			Name:    "traces",
			Help:    "otlp: send OpenTelemetry traces of runs to the collector that the standard variables OTEL_* name",
			Default: "off",
			Choices: []string{"off", "otlp"},
			Guard:   Own,
			Use:     toWork | toRun,
		},
		{
			Name:    "log-level",
			Help:    "lowest level that is logged",
			Default: "warn",
			Choices: []string{"debug", "info", "warn", "error"},
			Guard:   Changed,
			Use:     toTrack | toRun,
		},
		{
			Name:    "log-format",
			Help:    "auto: json for a service without a terminal, else text; with json a service prints only the log",
			Default: "auto",
			Choices: []string{"auto", "text", "json"},
			Guard:   Changed,
			Use:     toTrack | toRun,
		},
	}
}
