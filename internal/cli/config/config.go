// Package config is ralph's configuration: one table of keys ([Keys]), the typed [Config] it fills, and [Load], which
// merges flags, RALPH_* variables, the repository's file, the user's file and the defaults, in that order of strength.
//
// The command line calls it once a process; nothing else in ralph knows where a value came from. The package keeps no
// state, reads no process globals (the environment and the folders are handed in) and is safe for concurrent use.
package config

import "time"

// Config is every setting, effective and valid. The comments are in [Keys]; each field belongs to the key in its tag.
type Config struct {
	Labels          []string `mapstructure:"labels"`
	ExcludeLabels   []string `mapstructure:"exclude-labels"`
	Parallel        int      `mapstructure:"parallel"`
	Limit           int      `mapstructure:"limit"`
	ParallelByLabel []string `mapstructure:"parallel-by-label"`
	MaxOpen         int      `mapstructure:"max-open-requests"`
	Overlap         string   `mapstructure:"overlap"`

	Assignee    string   `mapstructure:"assignee"`
	Milestone   string   `mapstructure:"milestone"`
	Authors     []string `mapstructure:"authors"`
	TrustedBots []string `mapstructure:"trusted-bots"`

	PriorityLabels []string `mapstructure:"priority-labels"`

	Tracker               string   `mapstructure:"tracker"`
	Project               string   `mapstructure:"project"`
	ForgeURL              string   `mapstructure:"forge-url"`
	TokenEnv              []string `mapstructure:"token-env"`
	TokenFile             string   `mapstructure:"token-file"`
	TokenCommand          []string `mapstructure:"token-command"`
	GitHubAppID           int64    `mapstructure:"github-app-id"`
	GitHubAppInstallation int64    `mapstructure:"github-app-installation"`
	GitHubAppKey          string   `mapstructure:"github-app-key"`
	CAFile                string   `mapstructure:"ca-file"`

	WriteSpacing time.Duration `mapstructure:"write-spacing"`

	Local Local `mapstructure:"local"`

	Agent           string   `mapstructure:"agent"`
	Model           string   `mapstructure:"model"`
	Fallback        []string `mapstructure:"fallback"`
	Attempts        []string `mapstructure:"attempts"`
	Effort          string   `mapstructure:"effort"`
	PermissionMode  string   `mapstructure:"permission-mode"`
	SkipPermissions bool     `mapstructure:"skip-permissions"`
	AgentCommand    []string `mapstructure:"agent-command"`
	AgentArgs       []string `mapstructure:"agent-args"`
	AgentEnv        []string `mapstructure:"agent-env"`
	PromptFile      string   `mapstructure:"prompt-file"`

	Sandbox            string   `mapstructure:"sandbox"`
	Allow              []string `mapstructure:"allow"`
	AllowPrivate       []string `mapstructure:"allow-private"`
	AgentUpstream      string   `mapstructure:"agent-upstream"`
	Mounts             []string `mapstructure:"mounts"`
	SandboxShow        []string `mapstructure:"sandbox-show"`
	Image              string   `mapstructure:"image"`
	MemoryMB           int      `mapstructure:"memory-mb"`
	CPUs               float64  `mapstructure:"cpus"`
	PIDs               int      `mapstructure:"pids"`
	ScratchMB          int      `mapstructure:"scratch-mb"`
	ContainerUser      string   `mapstructure:"container-user"`
	ContainerRuntime   string   `mapstructure:"container-runtime"`
	ContainerFiles     string   `mapstructure:"container-files"`
	ContainerUnbounded bool     `mapstructure:"container-unbounded"`
	ContainerNetwork   string   `mapstructure:"container-network"`
	ContainerUserns    string   `mapstructure:"container-userns"`
	ContainerSELinux   string   `mapstructure:"container-selinux"`
	ContainerGroups    []string `mapstructure:"container-groups"`
	ContainerDevices   []string `mapstructure:"container-devices"`
	ContainerWorkdir   string   `mapstructure:"container-workdir"`
	ContainerKeep      bool     `mapstructure:"container-keep"`
	ContainerArgs      []string `mapstructure:"container-args"`
	Before             []string `mapstructure:"before"`
	Copy               []string `mapstructure:"copy"`
	Setup              []string `mapstructure:"setup"`
	After              []string `mapstructure:"after"`
	SetupInputs        []string `mapstructure:"setup-inputs"`
	GateOn             string   `mapstructure:"gate-on"`
	GateFiles          string   `mapstructure:"gate-files"`
	GateCanary         bool     `mapstructure:"gate-canary"`
	Gate               []string `mapstructure:"gate"`
	Proof              string   `mapstructure:"proof"`
	ProofCommand       string   `mapstructure:"proof-command"`
	Review             string   `mapstructure:"review"`
	ReviewRounds       int      `mapstructure:"review-rounds"`
	ReviewCommand      []string `mapstructure:"review-command"`

	MaxIterations    int      `mapstructure:"max-iterations"`
	NoProgress       int      `mapstructure:"no-progress"`
	Resume           string   `mapstructure:"resume"`
	CompletionSignal []string `mapstructure:"completion-signal"`

	Base             string   `mapstructure:"base"`
	BranchPrefix     string   `mapstructure:"branch-prefix"`
	Publish          string   `mapstructure:"publish"`
	ProtectedPaths   []string `mapstructure:"protected-paths"`
	CommitAuthor     string   `mapstructure:"commit-author"`
	Committer        string   `mapstructure:"committer"`
	SignOff          bool     `mapstructure:"sign-off"`
	CoAuthors        []string `mapstructure:"co-authors"`
	Sign             string   `mapstructure:"sign"`
	ProofKey         string   `mapstructure:"proof-key"`
	RequestTemplate  string   `mapstructure:"request-template"`
	RequestTarget    string   `mapstructure:"request-target"`
	RequestLabels    []string `mapstructure:"request-labels"`
	Reviewers        []string `mapstructure:"reviewers"`
	RequestAssignees []string `mapstructure:"request-assignees"`
	MaxRounds        int      `mapstructure:"max-rounds"`
	Remote           string   `mapstructure:"remote"`

	IdleTimeout       time.Duration `mapstructure:"idle-timeout"`
	CompletionTimeout time.Duration `mapstructure:"completion-timeout"`
	CompletionCap     time.Duration `mapstructure:"completion-cap"`
	IterationTimeout  time.Duration `mapstructure:"iteration-timeout"`
	RunTimeout        time.Duration `mapstructure:"run-timeout"`
	GateTimeout       time.Duration `mapstructure:"gate-timeout"`
	SetupTimeout      time.Duration `mapstructure:"setup-timeout"`
	StopGrace         time.Duration `mapstructure:"stop-grace"`
	Poll              time.Duration `mapstructure:"poll"`
	ClaimTTL          time.Duration `mapstructure:"claim-ttl"`

	WebhookSecretFile string `mapstructure:"webhook-secret-file"`

	NotifyOn               []string `mapstructure:"notify-on"`
	NotifyCommand          []string `mapstructure:"notify-command"`
	NotifyURL              string   `mapstructure:"notify-url"`
	NotifySecretFile       string   `mapstructure:"notify-secret-file"`
	NotifySlackFile        string   `mapstructure:"notify-slack-file"`
	NotifyMailTo           []string `mapstructure:"notify-mail-to"`
	NotifyMailFrom         string   `mapstructure:"notify-mail-from"`
	NotifyMailServer       string   `mapstructure:"notify-mail-server"`
	NotifyMailUser         string   `mapstructure:"notify-mail-user"`
	NotifyMailPasswordFile string   `mapstructure:"notify-mail-password-file"`

	MaxAttempts     int           `mapstructure:"max-attempts"`
	RetryBackoff    time.Duration `mapstructure:"retry-backoff"`
	RetryBackoffMax time.Duration `mapstructure:"retry-backoff-max"`
	BudgetTokens    int64         `mapstructure:"budget-tokens"`
	BudgetUSD       float64       `mapstructure:"budget-usd"`

	BudgetTokensIteration int64   `mapstructure:"budget-tokens-iteration"`
	BudgetUSDIteration    float64 `mapstructure:"budget-usd-iteration"`

	BudgetTokensDay   int64   `mapstructure:"budget-tokens-day"`
	BudgetTokensMonth int64   `mapstructure:"budget-tokens-month"`
	BudgetUSDDay      float64 `mapstructure:"budget-usd-day"`
	BudgetUSDMonth    float64 `mapstructure:"budget-usd-month"`

	BudgetAgents []string `mapstructure:"budget-agents"`

	Prices []string `mapstructure:"prices"`

	ReviewLabel     string `mapstructure:"review-label"`
	NeedsHumanLabel string `mapstructure:"needs-human-label"`
	NeedsInfoLabel  string `mapstructure:"needs-info-label"`
	ClaimedLabel    string `mapstructure:"claimed-label"`
	FailedLabel     string `mapstructure:"failed-label"`

	FleetParallel        int    `mapstructure:"fleet-parallel"`
	FleetAccount         string `mapstructure:"fleet-account"`
	FleetAccountParallel int    `mapstructure:"fleet-account-parallel"`

	StateDir   string `mapstructure:"state-dir"`
	LayerMaxMB int    `mapstructure:"layer-max-mb"`
	MinFreeMB  int    `mapstructure:"min-free-mb"`
	KeepRuns   int    `mapstructure:"keep-runs"`
	Traces     string `mapstructure:"traces"`
	LogLevel   string `mapstructure:"log-level"`
	LogFormat  string `mapstructure:"log-format"`
}

// Local configures the tracker "local".
type Local struct {
	Dir string `mapstructure:"dir"` // absolute inside a repository
}
