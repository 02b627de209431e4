package config

import (
	"slices"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config/access"
	"github.com/ralph-pool/ralph/internal/notify"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/schedule"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/claim"
)

// Keys is the table: flags, variables, the example file, `ralph config` and validation all come from it.
func Keys() []Key { return slices.Clone(table()) }

// table makes the keys once: every command of the program binds some of them at every start.
//
//nolint:gochecknoglobals // never written
var table = sync.OnceValue(func() []Key {
	var keys []Key
	for _, g := range groups() {
		for _, k := range g.keys {
			k.Group = g.title
			if k.Default == nil {
				k.Default = k.Kind.zero()
			}
			keys = append(keys, k)
		}
	}
	return keys
})

type group struct {
	title string
	keys  []Key
}

// groups are the keys below the headings they stand under. The default is the zero value where none is given.
func groups() []group {
	const second = int64(time.Second)
	byAgent, byGate := []string{"agent", "agent-command", "model"}, []string{"gate"}
	return []group{
		{"Which issues", []Key{
			{Name: "labels", Kind: Names, Short: "l", Default: []string{"no-human"}, Check: checkLabel, Guard: Lacking, Use: toWork, Help: "work issues that carry all of these labels"},
			{Name: "exclude-labels", Kind: Names, Check: checkLabel, Guard: Lacking, Use: toWork, Help: "leave out issues that carry one of these labels"},
			{Name: "parallel", Kind: Int, Short: "p", Default: 4, Min: 1, Guard: Above, Use: toWork, Help: "issues worked at the same time"},
			{Name: "parallel-by-label", Kind: Names, Check: checkLabelled(schedule.ParseLimit), Guard: Lacking, Use: toWork, Help: "LABEL=NUMBER: issues with this label worked at the same time"},
			{Name: "limit", Kind: Int, Guard: Above, Use: toWork, Help: "issues worked by one sweep at most; 0: no limit"},
			{Name: "max-open-requests", Kind: Int, Guard: Above, Use: toWork, Help: "begin no issue while so many requests, or branches in review, are open; 0: no limit"},
			{Name: "overlap", Default: "wait", Choices: []string{"wait", "allow"}, Guard: Ordinary, Use: toWork,
				Help: "whether issues wait for each other that are likely to change the same files"},
			{Name: "assignee", Guard: Beyond, Use: toWork, Help: "only issues assigned to this user"},
			{Name: "milestone", Guard: Beyond, Use: toWork, Help: "only issues of this milestone"},
			{Name: "authors", Kind: Names, Guard: Beyond, Use: toWork, Help: "only issues by these users"},
			{Name: "trusted-bots", Kind: Names, Check: checkID, Guard: Listed, Use: toWork, Help: "numeric ids of bots that may direct ralph as people with write permission do"},
			{Name: "priority-labels", Kind: Names, Check: checkLabelled(tracker.ParsePriority), Guard: Ordinary, Use: toWork,
				Help: "LABEL=NUMBER, 1 the most urgent, on a forge; empty: P0 to P4, priority: critical, high, medium, low"},
		}},
		{"Where they live", []Key{
			{Name: "tracker", Default: "auto", Registered: true, Guard: Changed, Use: toFind,
				Help: "auto: what hosts the remote, else local"},
			{Name: "local.dir", Kind: Path, Default: ".ralph/backlog", Guard: Outside, Use: toFind, Help: "folder of the local tracker's Markdown files"},
			{Name: "project", Guard: Changed, Use: toTrack, Help: "project on the forge, as a remote's address; empty: the remote"},
			{Name: "forge-url", Guard: Changed, Use: toTrack, Help: "address of the forge's API; empty: from the project's host"},
			{Name: "token-env", Kind: Names, Check: checkName, Guard: Changed, Use: toTrack,
				Help: "variables that may hold the forge's token; empty: the tracker's own, such as GITHUB_TOKEN"},
			{Name: "token-file", Kind: Path, Guard: Changed, Use: toTrack, Help: "file that holds the forge's token"},
			{Name: "token-command", Kind: Words, Guard: Changed, Use: toTrack, Help: "program that prints the forge's token, such as gh auth token"},
			{Name: "github-app-id", Kind: Int, Default: int64(0), Guard: Changed, Use: toTrack, Help: "GitHub App to work as, in place of a token"},
			{Name: "github-app-installation", Kind: Int, Default: int64(0), Guard: Changed, Use: toTrack, Help: "the GitHub App's installation; 0: the project's"},
			{Name: "github-app-key", Kind: Path, Guard: Changed, Use: toTrack, Help: "file with the GitHub App's private key"},
			{Name: "ca-file", Kind: Path, Guard: Changed, Use: toTrack, Help: "certificates to trust besides the system's"},
			{Name: "write-spacing", Kind: Duration, Default: time.Second, Guard: Below, Bound: true, Help: "time between writes to a forge"},
		}},
		{"Agent", []Key{
			{Name: "agent", Short: "a", Default: agents.Builtin()[0].Name(), Registered: true, Guard: Ordinary, Use: toWork | toRun | toExec, Help: "coding agent that does the work"},
			{Name: "model", Check: checkModel, Guard: Ordinary, Use: toWork | toRun, Help: "model the agent uses; empty: its own default"},
			{Name: "fallback", Kind: Names, Agents: true, Guard: Ordinary, Beside: byAgent, Use: toWork | toRun,
				Help: "AGENT or AGENT:MODEL, which go on in this order when the agent is unavailable, with their own defaults"},
			{Name: "attempts", Kind: Names, Agents: true, Guard: Ordinary, Beside: byAgent, Use: toWork,
				Help: "AGENT or AGENT:MODEL in place of agent and model in an issue's 1st, 2nd, … attempt; the last counts for all later ones"},
			{Name: "effort", Registered: true, Guard: Ordinary, Use: toWork | toRun, Help: "reasoning effort; empty: the agent's default"},
			{Name: "permission-mode", Registered: true, Guard: Changed, Use: toWork | toRun, Help: "the agent's own permission mode, instead of skip-permissions"},
			{Name: "skip-permissions", Kind: Bool, Guard: Looser, Bound: true, Levels: [][]string{{"false"}}, Use: toWork | toRun, Help: "let the agent act without asking, on this host too"},
			{Name: "agent-command", Kind: Words, Guard: Changed, Use: toWork | toRun | toExec, Help: "program that is the agent, with its arguments; reads the prompt on standard input"},
			{Name: "agent-args", Kind: Lines, Guard: Changed, Use: toWork | toRun, Help: "arguments added to the agent's command line"},
			{Name: "agent-env", Kind: Lines, Check: checkEnv, Hide: hideEnv, Guard: Changed, Use: toWork | toRun | toExec,
				Help: "environment of agent, setup and gate: NAME passes a variable on, NAME=VALUE sets it"},
			{Name: "prompt-file", Kind: Path, Guard: Outside, Use: toWork | toRun, Help: "prompt template; empty: .ralph/prompt.md, or the built-in one"},
		}},
		{"Checks and sandbox", []Key{
			{Name: "sandbox", Default: "auto", Registered: true, Guard: Looser, Bound: true, Levels: [][]string{{"sbx"}, {"auto", "native", "docker", "podman"}}, Use: toMerge | toRun | toExec,
				Help: "where agents and checks run; auto: native; landlock is weaker; none is this host, without isolation"},
			{Name: "allow", Kind: Lines, Check: access.CheckAllow, Guard: Listed, Use: toMerge | toRun | toExec, Help: "hosts that isolated runs may reach: HOST, *.DOMAIN or HOST:PORT"},
			{Name: "allow-private", Kind: Lines, Check: access.CheckAllow, Guard: Listed, Use: toMerge | toRun | toExec,
				Help: "hosts that isolated runs may reach on this host or a private network, such as a company's registry"},
			{Name: "agent-upstream", Guard: Changed, Use: toWork | toRun, Help: "address of the agent's model service; empty: the agent's own"},
			{Name: "mounts", Kind: Lines, Check: access.CheckMount, Guard: Listed, Use: toMerge | toRun | toExec, Help: "host files shown inside: host=PATH,inside=PATH,readonly"},
			{Name: "sandbox-show", Kind: Folders, Check: access.CheckShown, Guard: Listed, Use: toMerge | toRun | toExec,
				Help: "host folders that native and landlock sandboxes show besides the system's, read-only"},
			{Name: "image", Check: checkArgument, Guard: Ordinary, Use: toMerge | toRun | toExec, Help: "image of docker, podman (see ralph image build) and sbx"},
			{Name: "memory-mb", Kind: Int, Least: 32, Guard: Above, Use: toMerge | toRun | toExec, Help: "memory of one run in MiB; 0: 4096"},
			{Name: "cpus", Kind: Float, Guard: Above, Use: toMerge | toRun | toExec, Help: "processors of one run; 0: 2"},
			{Name: "pids", Kind: Int, Guard: Above, Use: toMerge | toRun | toExec, Help: "processes and threads of one run; 0: 1024"},
			{Name: "scratch-mb", Kind: Int, Guard: Above, Use: toMerge | toRun | toExec, Help: "scratch space of one run in MiB; 0: 2048"},
			{Name: "container-user", Guard: Changed, Use: toMerge | toRun | toExec, Help: "UID:GID in containers; empty: the worktree's owner"},
			{Name: "container-runtime", Check: checkArgument, Guard: Changed, Use: toMerge | toRun | toExec, Help: "such as runsc or kata; empty: the engine's"},
			{Name: "container-files", Default: "bind", Choices: []string{"bind", "copy"}, Guard: Ordinary, Use: toMerge | toRun | toExec,
				Help: "how files get into containers; copy: for an engine that does not see this host's files"},
			{Name: "container-unbounded", Kind: Bool, Guard: Looser, Bound: true, Levels: [][]string{{"false"}}, Use: toMerge | toRun | toExec,
				Help: "accept an engine that cannot hold memory, CPU and processes, such as rootless podman without delegated cgroups"},
			{Name: "container-network", Default: "none", Check: checkArgument, Guard: Looser, Bound: true, Levels: [][]string{{"none"}}, Use: toMerge | toRun | toExec,
				Help: "network of containers; none: only the egress proxy; any other has no allow-list"},
			{Name: "container-userns", Check: checkArgument, Guard: Changed, Use: toMerge | toRun | toExec,
				Help: "user namespace of containers, such as auto; host isolates less; empty: keep-id under rootless podman"},
			{Name: "container-selinux", Choices: []string{"disable", "private", "shared"}, Guard: Changed, Use: toMerge | toRun | toExec,
				Help: "private and shared relabel mounted files (podman); disable isolates less; empty: no label"},
			{Name: "container-groups", Kind: Names, Check: checkArgument, Guard: Listed, Use: toMerge | toRun | toExec, Help: "extra groups of commands in containers; isolates less"},
			{Name: "container-devices", Kind: Names, Check: checkArgument, Guard: Listed, Use: toMerge | toRun | toExec,
				Help: "host devices shown in containers, such as /dev/kvm; isolates less"},
			{Name: "container-workdir", Guard: Ordinary, Use: toMerge | toRun | toExec, Help: "path of the worktree in containers; empty: the same as outside"},
			{Name: "container-keep", Kind: Bool, Guard: Changed, Use: toMerge | toRun | toExec, Help: "leave stopped containers behind, with the label ralph.run"},
			{Name: "container-args", Kind: Lines, Guard: Changed, Use: toMerge | toRun | toExec, Help: "arguments added to the engine's run command"},
			{Name: "before", Kind: Lines, Check: checkLine, Guard: Changed, Use: toMerge, Help: "shell lines run on the host, on a checkout of the base, before the agent"},
			{Name: "copy", Kind: Lines, Guard: Listed, Use: toMerge | toRun, Help: "untracked files and folders copied into the worktree, such as .env"},
			{Name: "setup", Kind: Lines, Check: checkLine, Guard: Ordinary, Use: toMerge | toRun, Help: "shell lines run in the sandbox before the first iteration"},
			{Name: "after", Kind: Lines, Check: checkLine, Guard: Ordinary, Use: toWork | toRun,
				Help: "shell lines run in the sandbox at the end of a run, whatever came of it; a failure is a warning"},
			{Name: "setup-inputs", Kind: Lines, Guard: Ordinary, Use: toMerge,
				Help: "files and folders that setup depends on, and nothing else: until one changes, setup runs once for all runs"},
			{Name: "gate", Kind: Lines, Check: checkLine, Guard: Lacking, Use: toMerge | toRun, Help: "shell lines that must pass before a run may succeed"},
			{Name: "gate-on", Default: "checkout", Choices: []string{"checkout", "worktree"}, Guard: Looser, Beside: byGate, Levels: [][]string{{"checkout"}, {"worktree"}}, Use: toMerge | toRun,
				Help: "where the gate must pass: on a clean checkout of the commits, or only in the agent's worktree"},
			{Name: "gate-files", Default: "report", Choices: []string{"report", "require", "block"}, Guard: Looser, Levels: [][]string{{"block"}, {"require"}, {"report"}}, Use: toWork | toRun,
				Help: "changed tests and scripts: report them; require that the gate passes without them; block them"},
			{Name: "gate-canary", Kind: Bool, Default: true, Guard: Looser, Beside: byGate, Levels: [][]string{{"true"}, {"false"}}, Use: toMerge | toRun,
				Help: "make sure that the gate fails with a failing test, which ralph adds to a copy of the commits"},
			{Name: "proof", Default: "off", Choices: []string{"off", "report", "require"}, Guard: Looser, Levels: [][]string{{"require"}, {"report"}, {"off"}}, Use: toWork,
				Help: "new and changed tests must fail without the change and pass with it: report whether they do, or require it"},
			{Name: "proof-command", Guard: Ordinary, Use: toWork, Help: "shell line that runs tests; {files} in it stands for their files; empty: by language (docs/proof.md)"},
			{Name: "review", Agents: true, Guard: Ordinary, Beside: byAgent, Use: toWork, Help: "AGENT or AGENT:MODEL, best another model, that reviews what has passed the gate; empty: nobody"},
			{Name: "review-rounds", Kind: Int, Default: 2, Guard: Above, Use: toWork, Help: "how often findings of the review go back to the agent; then the request is a draft"},
			{Name: "review-command", Kind: Words, Guard: Changed, Use: toWork, Help: "program that is the reviewer, with its arguments, like agent-command"},
		}},
		{"Loop", []Key{
			{Name: "max-iterations", Kind: Int, Default: 10, Min: 1, Guard: Above, Use: toWork, Help: "agent processes in one run at most"},
			{Name: "no-progress", Kind: Int, Default: 3, Min: -1, Guard: Above, Use: toWork, Help: "iterations without a new commit that end a run; -1: never"},
			{Name: "resume", Default: "auto", Choices: []string{"auto", "never"}, Guard: Ordinary, Use: toWork | toRun,
				Help: "auto: an agent that is given feedback goes on in its session where that saves tokens"},
			{Name: "completion-signal", Kind: Lines, Default: []string{"<promise>COMPLETE</promise>"}, Guard: Ordinary, Use: toWork | toRun,
				Help: "texts by which the agent says that it is done"},
		}},
		{"Git", []Key{
			{Name: "base", Check: checkArgument, Guard: Changed, Use: toMerge, Help: "branch, tag or commit runs start from; empty: the branch checked out, unless it is ralph's own"},
			{Name: "branch-prefix", Default: "ralph/", Check: checkBranchPrefix, Guard: Changed, Use: toMerge, Help: "what the branches' names begin with"},
			{Name: "publish", Default: "auto", Choices: []string{"auto", "auto-merge", "branch", "merge", "pr", "none"}, Guard: Looser, Bound: true, Levels: [][]string{{"none"}, {"branch"}, {"auto", "pr"}, {"auto-merge", "merge"}}, Use: toWork,
				Help: "what becomes of finished commits; auto: pr on a forge, else branch; auto-merge: a pr that the forge merges once its checks pass"},
			{Name: "protected-paths", Kind: Lines, Default: publish.ProtectedPaths(), Guard: Lacking, Bound: true, Use: toMerge, Help: "paths that an agent's commits may not touch"},
			{Name: "commit-author", Check: checkIdent, Guard: Changed, Use: toMerge | toRun,
				Help: "author of the agent's commits, as Name <mail>; empty: a GitHub App's bot, else your git identity"},
			{Name: "committer", Check: checkIdent, Guard: Changed, Use: toMerge | toRun, Help: "committer of the agent's commits; empty: commit-author"},
			{Name: "sign-off", Kind: Bool, Guard: Changed, Use: toMerge | toRun, Help: "add Signed-off-by: COMMITTER to the messages of the agent's commits"},
			{Name: "co-authors", Kind: Lines, Check: checkIdent, Guard: Changed, Use: toMerge | toRun, Help: "add Co-authored-by: Name <mail> to the messages of the agent's commits"},
			{Name: "sign", Choices: []string{"gpg", "ssh"}, Guard: Changed, Use: toMerge | toRun,
				Help: "sign the agent's commits on the host, as your git's signing settings say: gpg or ssh; empty: no"},
			{Name: "proof-key", Kind: Path, Guard: Own, Use: toMerge,
				Help: "file of the ed25519 key that signs a proof of each success (docs/proof.md); empty: no proofs"},
			{Name: "request-template", Kind: Path, Guard: Outside, Use: toWork, Help: "body of pull requests; empty: the built-in one"},
			{Name: "request-target", Check: checkArgument, Guard: Changed, Use: toWork, Help: "branch that pull requests are for; empty: the base"},
			{Name: "request-labels", Kind: Names, Check: checkLabel, Guard: Changed, Use: toWork, Help: "labels of pull requests"},
			{Name: "reviewers", Kind: Names, Guard: Changed, Use: toWork, Help: "who is asked to review pull requests"},
			{Name: "request-assignees", Kind: Names, Guard: Changed, Use: toWork, Help: "who is assigned to pull requests"},
			{Name: "max-rounds", Kind: Int, Default: 3, Guard: Above, Use: toWork, Help: "follow-up runs of one pull request; 0: none"},
			{Name: "remote", Default: "auto", Check: checkRemote, Guard: Changed, Use: toFind,
				Help: "remote for claims and branches: auto (origin, if there is one), none, or a name"},
		}},
		{"Time", []Key{
			{Name: "idle-timeout", Kind: Duration, Default: 10 * time.Minute, Min: second, Guard: Above, Use: toWork | toRun, Help: "silence after which an agent is ended"},
			{Name: "completion-timeout", Kind: Duration, Default: time.Minute, Min: second, Guard: Above, Use: toWork | toRun, Help: "silence allowed after the completion signal"},
			{Name: "completion-cap", Kind: Duration, Default: 5 * time.Minute, Min: second, Guard: Above, Use: toWork | toRun, Help: "time allowed in all after the completion signal"},
			{Name: "iteration-timeout", Kind: Duration, Default: time.Hour, Min: second, Guard: Above, Use: toWork | toRun, Help: "time for one agent process"},
			{Name: "run-timeout", Kind: Duration, Default: 4 * time.Hour, Min: second, Guard: Above, Use: toWork | toRun, Help: "time for setup and iterations of one run"},
			{Name: "gate-timeout", Kind: Duration, Default: 15 * time.Minute, Min: second, Guard: Above, Use: toMerge | toRun, Help: "time for one gate line"},
			{Name: "setup-timeout", Kind: Duration, Default: 15 * time.Minute, Min: second, Guard: Above, Use: toMerge | toRun, Help: "time for one setup, before or after line"},
			{Name: "stop-grace", Kind: Duration, Default: 30 * time.Second, Min: second, Guard: Above, Use: toMerge | toRun | toExec, Help: "time agents get to end after Ctrl-C"},
			{Name: "poll", Kind: Duration, Default: time.Minute, Min: second, Guard: Below, Bound: true, Use: toServe, Help: "time between two sweeps of a service"},
			{Name: "claim-ttl", Kind: Duration, Default: 10 * time.Minute, Min: 10 * second, Longest: claim.MaxTTL, Guard: Ordinary, Use: toMerge, Help: "how long a claim is valid without renewal; at most 24h"},
		}},
		{"Service", []Key{
			{Name: "webhook-secret-file", Kind: Path, Guard: Own, Use: toServe, Help: "file with the secret of the webhook; empty: RALPH_WEBHOOK_SECRET"},
			{Name: "dashboard-url", Check: notify.CheckPage, Guard: Own, Use: toWork, Help: "address by which people open the dashboard, for links in notifications; empty: none"},
		}},
		{"Notifications", []Key{
			{Name: "notify-on", Kind: Names, Default: []string{notify.OnHuman, notify.OnProblem}, Check: notify.CheckOn, Guard: Own, Use: toWork,
				Help: "what people are told of: human (a person has to look), problem (the backlog cannot be worked), and outcomes such as succeeded"},
			{Name: "notify-command", Kind: Words, Guard: Own, Use: toWork, Help: "program that gets each notification as JSON on standard input"},
			{Name: "notify-url", Check: notify.CheckAddress, Guard: Own, Use: toWork, Help: "address that each notification is posted to as JSON"},
			{Name: "notify-secret-file", Kind: Path, Guard: Own, Use: toWork, Help: "file with the secret that signs what notify-url gets; empty: not signed"},
			{Name: "notify-slack-file", Kind: Path, Guard: Own, Use: toWork, Help: "file with the address of a Slack incoming webhook"},
			{Name: "notify-mail-to", Kind: Names, Check: notify.CheckMail, Guard: Own, Use: toWork, Help: "addresses that get each notification by e-mail"},
			{Name: "notify-mail-from", Check: notify.CheckMail, Guard: Own, Use: toWork, Help: "address that notifications by e-mail come from"},
			{Name: "notify-mail-server", Check: notify.CheckServer, Guard: Own, Use: toWork, Help: "HOST:PORT of the mail server, with TLS"},
			{Name: "notify-mail-user", Guard: Own, Use: toWork, Help: "user for the login at the mail server; empty: none"},
			{Name: "notify-mail-password-file", Kind: Path, Guard: Own, Use: toWork, Help: "file with the password of notify-mail-user"},
		}},
		{"Retries and budget", []Key{
			{Name: "max-attempts", Kind: Int, Default: 3, Min: 1, Guard: Above, Use: toWork, Help: "attempts before an issue goes to a human"},
			{Name: "retry-backoff", Kind: Duration, Default: time.Minute, Guard: Below, Use: toWork, Help: "wait before the second attempt; doubles"},
			{Name: "retry-backoff-max", Kind: Duration, Default: time.Hour, Guard: Below, Use: toWork, Help: "longest wait between attempts"},
			{Name: "budget-tokens", Kind: Int, Default: int64(0), Guard: Above, Use: toWork | toRun, Help: "tokens all attempts of an issue may use; 0: no limit"},
			{Name: "budget-usd", Kind: Float, Guard: Above, Use: toWork | toRun, Help: "US dollars all attempts of an issue may cost; 0: no limit"},
			{Name: "budget-tokens-run", Kind: Int, Default: int64(0), Guard: Above, Use: toWork | toRun, Help: "tokens one run may use, its review included; 0: no limit"},
			{Name: "budget-usd-run", Kind: Float, Guard: Above, Use: toWork | toRun, Help: "US dollars one run may cost, its review included; 0: no limit"},
			{Name: "budget-tokens-iteration", Kind: Int, Default: int64(0), Guard: Above, Use: toWork | toRun, Help: "tokens one iteration may use before the next begins; 0: no limit"},
			{Name: "budget-usd-iteration", Kind: Float, Guard: Above, Use: toWork | toRun, Help: "US dollars one iteration may cost before the next begins; 0: no limit"},
			{Name: "budget-agents", Kind: Names, Check: checkShare, Guard: Changed, Use: toWork | toRun,
				Help: "AGENT[:MODEL]=USD[/TOKENS] that this agent may use in one run; then the next of fallback goes on"},
			{Name: "budget-tokens-day", Kind: Int, Default: int64(0), Guard: Above, Use: toWork | toRun,
				Help: "tokens all runs of this repository on this host may use in one day, in UTC; 0: no limit"},
			{Name: "budget-tokens-month", Kind: Int, Default: int64(0), Guard: Above, Use: toWork | toRun,
				Help: "tokens all runs of this repository on this host may use in one month, in UTC; 0: no limit"},
			{Name: "budget-usd-day", Kind: Float, Guard: Above, Use: toWork | toRun, Help: "US dollars all runs of this repository on this host may cost in one day, in UTC; 0: no limit"},
			{Name: "budget-usd-month", Kind: Float, Guard: Above, Use: toWork | toRun,
				Help: "US dollars all runs of this repository on this host may cost in one month, in UTC; 0: no limit"},
			{Name: "estimate-tokens", Kind: Int, Default: ledger.DefaultEstimate().Tokens, Min: 1, Guard: Below, Bound: true, Use: toWork | toRun,
				Help: "tokens that an iteration counts for limits in tokens where nobody says what it used"},
			{Name: "estimate-usd", Kind: Float, Default: ledger.DefaultEstimate().CostUSD, Guard: Below, Bound: true, Use: toWork | toRun,
				Help: "US dollars that an iteration counts for limits in US dollars where nobody says what it used, or only its tokens are known"},
			{Name: "prices", Kind: Names, Check: checkPrice, Guard: Changed, Use: toWork | toRun,
				Help: "MODEL=INPUT/OUTPUT[/CACHE-READ/CACHE-WRITE] in US dollars for a million tokens, in place of ralph's own"},
		}},
		{"Labels ralph sets", []Key{
			{Name: "review-label", Default: "in-review", Check: checkLabel, Guard: Changed, Use: toMerge, Help: "on issues that are done"},
			{Name: "needs-human-label", Default: "needs-human", Check: checkLabel, Guard: Changed, Use: toMerge, Help: "on issues ralph gave up on"},
			{Name: "needs-info-label", Default: "needs-info", Check: checkLabel, Guard: Changed, Use: toMerge, Help: "on issues with a question"},
			{Name: "claimed-label", Check: checkLabel, Guard: Changed, Use: toMerge, Help: "on issues that are being worked; empty: none"},
			{Name: "failed-label", Check: checkLabel, Guard: Changed, Use: toMerge, Help: "on issues that wait for another attempt; empty: none"},
		}},
		{"Fleet", []Key{
			{Name: "fleet-parallel", Kind: Int, Guard: Above, Use: toServe, Help: "issues of the project worked at the same time on all machines; 0: no limit"},
			{Name: "fleet-account", Guard: Changed, Use: toServe,
				Help: "name of what the agents of several projects use up together, such as a provider's account; empty: the agents' names"},
			{Name: "fleet-account-parallel", Kind: Int, Guard: Above, Use: toServe, Help: "runs that may use the account at the same time on all machines; 0: no limit"},
		}},
		{"This host", []Key{
			{Name: "state-dir", Kind: Path, Guard: Changed, Use: toFind | toRun | toExec, Help: "folder of ralph's state; empty: $XDG_STATE_HOME/ralph"},
			{Name: "layer-max-mb", Kind: Int, Default: 4096, Guard: Above, Bound: true, Use: toMerge,
				Help: "disk in MiB for what setup has fetched and built on the base, with which runs start, and as much for checkouts that they share; 0: none"},
			{Name: "min-free-mb", Kind: Int, Default: 1024, Guard: Below, Bound: true, Use: toMerge,
				Help: "free disk space in MiB, for state-dir and for the git folder, below which the run that takes most is ended, and none is started; 0: no floor"},
			{Name: "keep-runs", Kind: Int, Default: 20, Min: 1, Guard: Below, Bound: true, Use: toMerge, Help: "runs of an issue whose logs are kept"},
			{Name: "traces", Default: "off", Choices: []string{"off", "otlp"}, Guard: Own, Use: toWork | toRun,
				Help: "otlp: send OpenTelemetry traces of runs to the collector that the standard variables OTEL_* name"},
			{Name: "log-level", Default: "warn", Choices: []string{"debug", "info", "warn", "error"}, Guard: Changed, Use: toTrack | toRun, Help: "least level that is logged"},
			{Name: "log-format", Default: "auto", Choices: []string{"auto", "text", "json"}, Guard: Changed, Use: toTrack | toRun, Help: "auto: json for a service without a terminal, else text; a service with json writes nothing else"},
		}},
	}
}
