// Package config is ralph's configuration: one table of keys ([Keys]), the typed [Config] it fills, and [Load], which
// merges flags, RALPH_* variables, the repository's file, the user's file and the defaults, in that order of strength.
//
// The command line calls it once a process; nothing else in ralph knows where a value came from. The package keeps no
// state, reads no process globals (the environment and the folders are handed in) and is safe for concurrent use.
package config

import "time"

// Config is every setting, effective and valid. A field is named as its key in [Keys], which says what it means: retry-backoff is
// RetryBackoff. The headings are those of the table.
type Config struct {
	// Which issues
	Labels, ExcludeLabels, ParallelByLabel, Authors, TrustedBots, PriorityLabels []string
	Parallel, Limit, MaxOpenRequests                                             int
	Overlap, Assignee, Milestone                                                 string

	// Where they live
	Tracker, LocalDir, Project, ForgeURL, TokenFile, GitHubAppKey, CAFile string
	TokenEnv, TokenCommand                                                []string
	GitHubAppID, GitHubAppInstallation                                    int64
	WriteSpacing                                                          time.Duration

	// Agent
	Agent, Model, Effort, PermissionMode, PromptFile      string
	Fallback, Attempts, AgentCommand, AgentArgs, AgentEnv []string
	SkipPermissions                                       bool

	// Checks and sandbox
	Sandbox, AgentUpstream, Image, ContainerUser, ContainerRuntime, ContainerFiles, ContainerNetwork         string
	ContainerUserns, ContainerSELinux, ContainerWorkdir, GateOn, GateFiles, Proof, ProofCommand, Review      string
	Allow, AllowPrivate, Mounts, SandboxShow, ContainerGroups, ContainerDevices, ContainerArgs, Before, Copy []string
	Setup, After, SetupInputs, Gate, ReviewCommand                                                           []string
	MemoryMB, PIDs, ScratchMB, ReviewRounds                                                                  int
	CPUs                                                                                                     float64
	ContainerUnbounded, ContainerKeep, GateCanary                                                            bool

	// Loop
	MaxIterations, NoProgress int
	Resume                    string
	CompletionSignal          []string

	// Git
	Base, BranchPrefix, Publish, CommitAuthor, Committer, Sign, ProofKey, RequestTemplate, RequestTarget, Remote string
	ProtectedPaths, CoAuthors, RequestLabels, Reviewers, RequestAssignees                                        []string
	SignOff                                                                                                      bool
	MaxRounds                                                                                                    int

	// Time
	IdleTimeout, CompletionTimeout, CompletionCap, IterationTimeout, RunTimeout, GateTimeout, SetupTimeout time.Duration
	StopGrace, Poll, ClaimTTL                                                                              time.Duration

	// Service
	WebhookSecretFile string

	// Notifications
	NotifyOn, NotifyCommand, NotifyMailTo                                                          []string
	NotifyURL, NotifySecretFile, NotifySlackFile, NotifyMailFrom, NotifyMailServer, NotifyMailUser string
	NotifyMailPasswordFile                                                                         string

	// Retries and budget
	MaxAttempts                                                             int
	RetryBackoff, RetryBackoffMax                                           time.Duration
	BudgetTokens, BudgetTokensIteration, BudgetTokensDay, BudgetTokensMonth int64
	BudgetUSD, BudgetUSDIteration, BudgetUSDDay, BudgetUSDMonth             float64
	BudgetAgents, Prices                                                    []string

	// Labels ralph sets
	ReviewLabel, NeedsHumanLabel, NeedsInfoLabel, ClaimedLabel, FailedLabel string

	// Fleet
	FleetParallel, FleetAccountParallel int
	FleetAccount                        string

	// This host
	StateDir, Traces, LogLevel, LogFormat string
	LayerMaxMB, MinFreeMB, KeepRuns       int
}
