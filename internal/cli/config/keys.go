package config

import "time"

// Keys is the table: flags, variables, the example file, `ralph config` and validation all come from it.
func Keys() []Key {
	second := int64(time.Second)
	return []Key{
		{Name: "labels", Group: "Which issues", Kind: Names, Default: []string{"no-human"}, FlagName: "label", Check: checkLabel,
			Help: "work issues that carry all of these labels"},
		{Name: "exclude-labels", Group: "Which issues", Kind: Names, Default: []string{}, FlagName: "exclude-label", Check: checkLabel,
			Help: "and none of these"},
		{Name: "parallel", Group: "Which issues", Kind: Int, Default: 4, Min: 1, Help: "issues worked at the same time"},
		{Name: "limit", Group: "Which issues", Kind: Int, Default: 0, Help: "issues worked by one sweep at most; 0: no limit"},

		{Name: "tracker", Group: "Where they live", Kind: Text, Default: "local", Registered: true, Help: "where the issues live"},
		{Name: "local.dir", Group: "Where they live", Kind: Path, Default: ".ralph/backlog",
			Help: "folder of the local tracker's Markdown files"},

		{Name: "agent", Group: "Agent", Kind: Text, Default: "claude-code", Registered: true, Help: "coding agent that does the work"},
		{Name: "model", Group: "Agent", Kind: Text, Default: "", Help: "model the agent uses; empty: its own default"},
		{Name: "effort", Group: "Agent", Kind: Text, Default: "", Choices: []string{"low", "medium", "high", "xhigh"},
			Help: "reasoning effort; empty: the agent's default"},
		{Name: "permission-mode", Group: "Agent", Kind: Text, Default: "",
			Help: "the agent's own permission mode, instead of skip-permissions"},
		{Name: "skip-permissions", Group: "Agent", Kind: Bool, Default: false,
			Help: "let the agent act without asking, on this host too"},
		{Name: "agent-command", Group: "Agent", Kind: Words, Default: []string{},
			Help: "program that is the agent \"command\"; reads the prompt on standard input"},
		{Name: "agent-args", Group: "Agent", Kind: Lines, Default: []string{}, FlagName: "agent-arg",
			Help: "arguments added to the agent's command line"},
		{Name: "agent-env", Group: "Agent", Kind: Lines, Default: []string{}, Check: checkEnv, Hide: hideEnv,
			Help: "environment the agent gets: NAME passes a variable on, NAME=VALUE sets it"},
		{Name: "prompt-file", Group: "Agent", Kind: Path, Default: "",
			Help: "prompt template; empty: .ralph/prompt.md, or the built-in one"},

		{Name: "sandbox", Group: "Checks and sandbox", Kind: Text, Default: "", Registered: true,
			Help: "where agents and checks run; must be chosen, as \"none\" runs them on this host"},
		{Name: "before", Group: "Checks and sandbox", Kind: Lines, Default: []string{},
			Help: "shell lines run on the host before a run's first agent"},
		{Name: "copy", Group: "Checks and sandbox", Kind: Lines, Default: []string{},
			Help: "untracked files and folders copied into the worktree"},
		{Name: "setup", Group: "Checks and sandbox", Kind: Lines, Default: []string{},
			Help: "shell lines run in the sandbox before the first iteration"},
		{Name: "gate", Group: "Checks and sandbox", Kind: Lines, Default: []string{},
			Help: "shell lines that must pass before a run may succeed"},

		{Name: "max-iterations", Group: "Loop", Kind: Int, Default: 10, Min: 1, Help: "agent processes in one run at most"},
		{Name: "no-progress", Group: "Loop", Kind: Int, Default: 3, Min: -1,
			Help: "iterations without a new commit that end a run; -1: never"},
		{Name: "completion-signal", Group: "Loop", Kind: Lines, Default: []string{"<promise>COMPLETE</promise>"},
			Help: "texts by which the agent says that it is done"},

		{Name: "base", Group: "Git", Kind: Text, Default: "", Check: checkArgument,
			Help: "branch, tag or commit runs start from; empty: the branch checked out"},
		{Name: "branch-prefix", Group: "Git", Kind: Text, Default: "ralph/", Check: checkBranchPrefix,
			Help: "what the branches' names begin with"},
		{Name: "publish", Group: "Git", Kind: Text, Default: "branch", Choices: []string{"branch", "merge", "none"},
			Help: "what becomes of finished commits"},
		{Name: "remote", Group: "Git", Kind: Text, Default: "auto", Check: checkRemote,
			Help: "remote for claims and branches: auto (origin, if there is one), none, or a name"},

		{Name: "idle-timeout", Group: "Time", Kind: Duration, Default: 10 * time.Minute, Min: second, Seconds: true,
			Help: "silence after which an agent is ended"},
		{Name: "completion-timeout", Group: "Time", Kind: Duration, Default: time.Minute, Min: second, Seconds: true,
			Help: "silence allowed after the completion signal"},
		{Name: "completion-cap", Group: "Time", Kind: Duration, Default: 5 * time.Minute, Min: second,
			Help: "time allowed in all after the completion signal"},
		{Name: "iteration-timeout", Group: "Time", Kind: Duration, Default: time.Hour, Min: second, Help: "time for one agent process"},
		{Name: "run-timeout", Group: "Time", Kind: Duration, Default: 4 * time.Hour, Min: second, Help: "time for one run"},
		{Name: "gate-timeout", Group: "Time", Kind: Duration, Default: 15 * time.Minute, Min: second, Help: "time for one gate line"},
		{Name: "setup-timeout", Group: "Time", Kind: Duration, Default: 15 * time.Minute, Min: second,
			Help: "time for one setup or before line"},
		{Name: "stop-grace", Group: "Time", Kind: Duration, Default: 30 * time.Second, Min: second,
			Help: "time agents get to end after Ctrl-C"},
		{Name: "claim-life", Group: "Time", Kind: Duration, Default: 10 * time.Minute, Min: 10 * second,
			Help: "how long a claim is valid without renewal"},

		{Name: "max-attempts", Group: "Retries and budget", Kind: Int, Default: 3, Min: 1,
			Help: "attempts before an issue goes to a human"},
		{Name: "retry-backoff", Group: "Retries and budget", Kind: Duration, Default: time.Minute, Help: "wait before the second attempt; doubles"},
		{Name: "retry-backoff-max", Group: "Retries and budget", Kind: Duration, Default: time.Hour, Help: "longest wait between attempts"},
		{Name: "budget-tokens", Group: "Retries and budget", Kind: Int, Default: int64(0), Help: "tokens all attempts of an issue may use; 0: no limit"},
		{Name: "budget-usd", Group: "Retries and budget", Kind: Float, Default: 0.0, Help: "US dollars all attempts of an issue may cost; 0: no limit"},

		{Name: "review-label", Group: "Labels ralph sets", Kind: Text, Default: "in-review", Check: checkLabel, Help: "on issues that are done"},
		{Name: "needs-human-label", Group: "Labels ralph sets", Kind: Text, Default: "needs-human", Check: checkLabel,
			Help: "on issues ralph gave up on"},
		{Name: "needs-info-label", Group: "Labels ralph sets", Kind: Text, Default: "needs-info", Check: checkLabel,
			Help: "on issues with a question"},

		{Name: "state-dir", Group: "This host", Kind: Path, Default: "", Help: "folder of ralph's state; empty: $XDG_STATE_HOME/ralph"},
		{Name: "keep-runs", Group: "This host", Kind: Int, Default: 20, Min: 1, Help: "runs of an issue whose logs are kept"},
		{Name: "log-level", Group: "This host", Kind: Text, Default: "warn",
			Choices: []string{"debug", "info", "warn", "error"}, Help: "least level that is logged"},
		{Name: "log-format", Group: "This host", Kind: Text, Default: "auto", Choices: []string{"auto", "text", "json"},
			Help: "auto: text on a terminal, else json"},
	}
}
