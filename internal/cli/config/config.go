// Package config is ralph's configuration: one table of keys (package keys), the typed [Config] it fills, and [Load], which
// merges flags, RALPH_* variables, the repository's file, the user's file and the defaults, in that order of strength.
//
// The command line loads the configuration once; the rest of ralph does not know the origin of a value. The package keeps no
// state, reads no globals of the process (the caller passes environment and folders) and is safe for concurrent use.
package config

import "time"

// Config holds the effective, valid value of every setting. Each field is named after its key in package keys, which documents
// it: retry-backoff is RetryBackoff. The headings are those of the table.
type Config struct {
	// Which issues
	Labels          []string
	ExcludeLabels   []string
	ParallelByLabel []string
	Authors         []string
	TrustedBots     []string
	PriorityLabels  []string
	Parallel        int
	Limit           int
	MaxOpenRequests int
	Overlap         string
	Assignee        string
	Milestone       string

	// Where they live
	Tracker               string
	LocalDir              string
	Project               string
	ForgeURL              string
	TokenFile             string
	GitHubAppKey          string
	CAFile                string
	TokenEnv              []string
	TokenCommand          []string
	GitHubAppID           int64
	GitHubAppInstallation int64
	WriteSpacing          time.Duration

	// Agent
	Agent           string
	Model           string
	Effort          string
	PermissionMode  string
	PromptFile      string
	Fallback        []string
	Attempts        []string
	AgentCommand    []string
	AgentArgs       []string
	AgentEnv        []string
	SkipPermissions bool

	// Checks and sandbox
	Sandbox            string
	AgentUpstream      string
	Image              string
	ContainerUser      string
	ContainerRuntime   string
	ContainerFiles     string
	ContainerNetwork   string
	ContainerUserns    string
	ContainerSELinux   string
	ContainerWorkdir   string
	GateOn             string
	GateFiles          string
	Retest             string
	RetestCommand      string
	Review             string
	Allow              []string
	AllowPrivate       []string
	Mounts             []string
	SandboxShow        []string
	ContainerGroups    []string
	ContainerDevices   []string
	ContainerArgs      []string
	Before             []string
	Copy               []string
	Setup              []string
	After              []string
	SetupInputs        []string
	Gate               []string
	ReviewCommand      []string
	MemoryMB           int
	PIDs               int
	ScratchMB          int
	ReviewRounds       int
	CPUs               float64
	ContainerUnbounded bool
	ContainerKeep      bool
	GateCanary         bool

	// Loop
	MaxIterations    int
	NoProgress       int
	Resume           string
	CompletionSignal []string

	// Git
	Base             string
	BranchPrefix     string
	Publish          string
	CommitAuthor     string
	Committer        string
	Sign             string
	ProofKey         string
	RequestTemplate  string
	RequestTarget    string
	Remote           string
	ProtectedPaths   []string
	CoAuthors        []string
	RequestLabels    []string
	Reviewers        []string
	RequestAssignees []string
	SignOff          bool
	MaxRounds        int

	// Time
	IdleTimeout       time.Duration
	CompletionTimeout time.Duration
	CompletionCap     time.Duration
	IterationTimeout  time.Duration
	RunTimeout        time.Duration
	GateTimeout       time.Duration
	SetupTimeout      time.Duration
	StopGrace         time.Duration
	Poll              time.Duration
	ClaimTTL          time.Duration

	// Service
	WebhookSecretFile string
	DashboardURL      string

	// Notifications
	NotifyOn               []string
	NotifyCommand          []string
	NotifyMailTo           []string
	NotifyURL              string
	NotifySecretFile       string
	NotifySlackFile        string
	NotifyMailFrom         string
	NotifyMailServer       string
	NotifyMailUser         string
	NotifyMailPasswordFile string

	// Retries and budget
	MaxAttempts           int
	RetryBackoff          time.Duration
	RetryBackoffMax       time.Duration
	BudgetTokens          int64
	BudgetTokensRun       int64
	BudgetTokensIteration int64
	BudgetTokensDay       int64
	BudgetTokensMonth     int64
	BudgetUSD             float64
	BudgetUSDRun          float64
	BudgetUSDIteration    float64
	BudgetUSDDay          float64
	BudgetUSDMonth        float64
	BudgetAgents          []string
	EstimateTokens        int64
	EstimateUSD           float64
	Prices                []string
	AllowModels           []string

	// Labels ralph sets
	ReviewLabel     string
	NeedsHumanLabel string
	NeedsInfoLabel  string
	ClaimedLabel    string
	FailedLabel     string

	// Fleet
	FleetParallel        int
	FleetAccountParallel int
	FleetAccount         string

	// This host
	StateDir   string
	Traces     string
	LogLevel   string
	LogFormat  string
	LayerMaxMB int
	MinFreeMB  int
	KeepRuns   int
}
