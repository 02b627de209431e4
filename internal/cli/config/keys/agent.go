package keys

import (
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// agentKeys returns the keys of the group "Agent".
func agentKeys() []Key {
	return []Key{
		{
			Name:       "agent",
			Help:       "coding agent that does the work",
			Short:      "a",
			Default:    agents.Builtin()[0].Name(),
			Registered: true,
			Guard:      Ordinary,
			Use:        toWork | toRun | toExec,
		},
		{
			Name:  "model",
			Help:  "model the agent uses; empty: its own default",
			Check: checkModel,
			Guard: Ordinary,
			Use:   toWork | toRun,
		},
		{
			Name:   "fallback",
			Help:   "AGENT or AGENT:MODEL to use, in this order, when the agent is unavailable; each with its own defaults",
			Kind:   Names,
			Agents: true,
			Guard:  Ordinary,
			Beside: byAgent(),
			Use:    toWork | toRun,
		},
		{
			Name: "attempts",
			Help: "AGENT or AGENT:MODEL for an issue's 1st, 2nd, … attempt, instead of agent and model; " +
				"the last is for all later ones",
			Kind:   Names,
			Agents: true,
			Guard:  Ordinary,
			Beside: byAgent(),
			Use:    toWork,
		},
		{
			Name:       "effort",
			Help:       "reasoning effort; empty: the agent's default",
			Registered: true,
			Guard:      Ordinary,
			Use:        toWork | toRun,
		},
		{
			Name:       "permission-mode",
			Help:       "the agent's own permission mode, instead of skip-permissions",
			Registered: true,
			Guard:      Changed,
			Use:        toWork | toRun,
		},
		{
			Name:   "skip-permissions",
			Help:   "let the agent act without asking, on this host too",
			Kind:   Bool,
			Guard:  Looser,
			Bound:  true,
			Levels: [][]string{{"false"}},
			Use:    toWork | toRun,
		},
		{
			Name:  "agent-command",
			Help:  "your own agent: program and arguments; it reads the prompt on standard input",
			Kind:  Words,
			Guard: Changed,
			Use:   toWork | toRun | toExec,
		},
		{
			Name:  "agent-args",
			Help:  "arguments added to the agent's command line",
			Kind:  Lines,
			Guard: Changed,
			Use:   toWork | toRun,
		},
		{
			Name:  "agent-env",
			Help:  "environment of agent, setup and gate: NAME passes a variable on, NAME=VALUE sets it",
			Kind:  Lines,
			Check: checkEnv,
			Hide:  hideEnv,
			Guard: Changed,
			Use:   toWork | toRun | toExec,
		},
		{
			Name:  "prompt-file",
			Help:  "prompt template; empty: .ralph/prompt.md, or the built-in one",
			Kind:  Path,
			Guard: Outside,
			Use:   toWork | toRun,
		},
	}
}

// loopKeys returns the keys of the group "Loop".
func loopKeys() []Key {
	return []Key{
		{
			Name:    "max-iterations",
			Help:    "most agent processes in one run",
			Kind:    Int,
			Default: 10,
			Min:     1,
			Guard:   Above,
			Use:     toWork,
		},
		{
			Name:    "no-progress",
			Help:    "iterations without a new commit after which a run ends; -1: never",
			Kind:    Int,
			Default: 3,
			Min:     -1,
			Guard:   Above,
			Use:     toWork,
		},
		{
			Name:    "resume",
			Help:    "auto: an agent with feedback continues its session where that saves tokens",
			Default: "auto",
			Choices: []string{"auto", "never"},
			Guard:   Ordinary,
			Use:     toWork | toRun,
		},
		{
			Name:    "completion-signal",
			Help:    "texts with which the agent says that it is done",
			Kind:    Lines,
			Default: []string{"<promise>COMPLETE</promise>"},
			Guard:   Ordinary,
			Use:     toWork | toRun,
		},
	}
}

// timeKeys returns the keys of the group "Time".
func timeKeys() []Key {
	return []Key{
		{
			Name:    "idle-timeout",
			Help:    "silence after which an agent is stopped",
			Kind:    Duration,
			Default: 10 * time.Minute,
			Min:     second,
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:    "completion-timeout",
			Help:    "silence allowed after the completion signal",
			Kind:    Duration,
			Default: time.Minute,
			Min:     second,
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:    "completion-cap",
			Help:    "total time allowed after the completion signal",
			Kind:    Duration,
			Default: 5 * time.Minute,
			Min:     second,
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:    "iteration-timeout",
			Help:    "time for one agent process",
			Kind:    Duration,
			Default: time.Hour,
			Min:     second,
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:    "run-timeout",
			Help:    "time for setup and iterations of one run",
			Kind:    Duration,
			Default: 4 * time.Hour,
			Min:     second,
			Guard:   Above,
			Use:     toWork | toRun,
		},
		{
			Name:    "gate-timeout",
			Help:    "time for one gate line",
			Kind:    Duration,
			Default: 15 * time.Minute,
			Min:     second,
			Guard:   Above,
			Use:     toMerge | toRun,
		},
		{
			Name:    "setup-timeout",
			Help:    "time for one setup, before or after line",
			Kind:    Duration,
			Default: 15 * time.Minute,
			Min:     second,
			Guard:   Above,
			Use:     toMerge | toRun,
		},
		{
			Name:    "stop-grace",
			Help:    "time agents have to exit after Ctrl-C",
			Kind:    Duration,
			Default: 30 * time.Second,
			Min:     second,
			Guard:   Above,
			Use:     toMerge | toRun | toExec,
		},
		{
			Name:    "poll",
			Help:    "time between two sweeps of a service",
			Kind:    Duration,
			Default: time.Minute,
			Min:     second,
			Guard:   Below,
			Bound:   true,
			Use:     toServe,
		},
		{
			Name:    "claim-ttl",
			Help:    "how long a claim is valid without renewal; at most 24h",
			Kind:    Duration,
			Default: 10 * time.Minute,
			Min:     10 * second,
			Longest: claim.MaxTTL,
			Guard:   Ordinary,
			Use:     toMerge,
		},
	}
}
