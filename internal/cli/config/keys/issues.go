package keys

import "time"

// issueKeys returns the keys of the group "Which issues".
func issueKeys() []Key {
	return []Key{
		{
			Name:    "labels",
			Help:    "work issues that carry all of these labels",
			Kind:    Names,
			Short:   "l",
			Default: []string{"no-human"},
			Check:   checkLabel,
			Guard:   Lacking,
			Use:     toWork,
		},
		{
			Name:  "exclude-labels",
			Help:  "skip issues that carry any of these labels",
			Kind:  Names,
			Check: checkLabel,
			Guard: Lacking,
			Use:   toWork,
		},
		{
			Name:    "parallel",
			Help:    "issues worked at the same time",
			Kind:    Int,
			Short:   "p",
			Default: 4,
			Min:     1,
			Guard:   Above,
			Use:     toWork,
		},
		{
			Name:  "parallel-by-label",
			Help:  "LABEL=NUMBER: most issues with this label worked at the same time",
			Kind:  Names,
			Check: checkLabelNumber,
			Guard: Lacking,
			Use:   toWork,
		},
		{
			Name:  "limit",
			Help:  "most issues that one sweep works; 0: no limit",
			Kind:  Int,
			Guard: Above,
			Use:   toWork,
		},
		{
			Name:  "max-open-requests",
			Help:  "start no issue while this many requests, or branches in review, are open; 0: no limit",
			Kind:  Int,
			Guard: Above,
			Use:   toWork,
		},
		{
			Name:    "overlap",
			Help:    "whether issues that are likely to change the same files wait for each other",
			Default: "wait",
			Choices: []string{"wait", "allow"},
			Guard:   Ordinary,
			Use:     toWork,
		},
		{
			Name:  "assignee",
			Help:  "only issues assigned to this user",
			Guard: Beyond,
			Use:   toWork,
		},
		{
			Name:  "milestone",
			Help:  "only issues of this milestone",
			Guard: Beyond,
			Use:   toWork,
		},
		{
			Name:  "authors",
			Help:  "only issues by these users",
			Kind:  Names,
			Guard: Beyond,
			Use:   toWork,
		},
		{
			Name:  "trusted-bots",
			Help:  "numeric ids of bots that may direct ralph as people with write permission do",
			Kind:  Names,
			Check: checkID,
			Guard: Listed,
			Use:   toWork,
		},
		{
			Name:  "priority-labels",
			Help:  "LABEL=NUMBER, 1 the most urgent, on a forge; empty: P0 to P4, priority: critical, high, medium, low",
			Kind:  Names,
			Check: checkLabelNumber,
			Guard: Ordinary,
			Use:   toWork,
		},
	}
}

// trackerKeys returns the keys of the group "Where they live".
func trackerKeys() []Key {
	return []Key{
		{
			Name:       "tracker",
			Help:       "auto: the remote's forge, else local",
			Default:    "auto",
			Registered: true,
			Guard:      Changed,
			Use:        toFind,
		},
		{
			Name:    "local.dir",
			Help:    "folder of the local tracker's Markdown files",
			Kind:    Path,
			Default: ".ralph/backlog",
			Guard:   Outside,
			Use:     toFind,
		},
		{
			Name:  "project",
			Help:  "project on the forge, as a remote's address; empty: the remote",
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:  "forge-url",
			Help:  "address of the forge's API; empty: from the project's host",
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:  "token-env",
			Help:  "variables that may hold the forge's token; empty: the tracker's own, such as GITHUB_TOKEN",
			Kind:  Names,
			Check: checkName,
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:  "token-file",
			Help:  "file that holds the forge's token",
			Kind:  Path,
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:  "token-command",
			Help:  "program that prints the forge's token, such as gh auth token",
			Kind:  Words,
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:    "github-app-id",
			Help:    "GitHub App to work as, instead of a token",
			Kind:    Int,
			Default: int64(0),
			Guard:   Changed,
			Use:     toTrack,
		},
		{
			Name:    "github-app-installation",
			Help:    "the GitHub App's installation; 0: the project's",
			Kind:    Int,
			Default: int64(0),
			Guard:   Changed,
			Use:     toTrack,
		},
		{
			Name:  "github-app-key",
			Help:  "file with the GitHub App's private key",
			Kind:  Path,
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:  "ca-file",
			Help:  "certificates to trust besides the system's",
			Kind:  Path,
			Guard: Changed,
			Use:   toTrack,
		},
		{
			Name:    "write-spacing",
			Help:    "time between writes to a forge",
			Kind:    Duration,
			Default: time.Second,
			Guard:   Below,
			Bound:   true,
		},
	}
}

// labelKeys returns the keys of the group "Labels ralph sets".
func labelKeys() []Key {
	return []Key{
		{
			Name:    "review-label",
			Help:    "on issues that are done",
			Default: "in-review",
			Check:   checkLabel,
			Guard:   Changed,
			Use:     toMerge,
		},
		{
			Name:    "needs-human-label",
			Help:    "on issues ralph gave up on",
			Default: "needs-human",
			Check:   checkLabel,
			Guard:   Changed,
			Use:     toMerge,
		},
		{
			Name:    "needs-info-label",
			Help:    "on issues with a question",
			Default: "needs-info",
			Check:   checkLabel,
			Guard:   Changed,
			Use:     toMerge,
		},
		{
			Name:  "claimed-label",
			Help:  "on issues that are being worked; empty: none",
			Check: checkLabel,
			Guard: Changed,
			Use:   toMerge,
		},
		{
			Name:  "failed-label",
			Help:  "on issues that wait for another attempt; empty: none",
			Check: checkLabel,
			Guard: Changed,
			Use:   toMerge,
		},
	}
}
