package github

import (
	"encoding/json"
	"strings"
	"time"
)

// What go-github v62 has no fields for, or decodes less strictly than ralph wants.

type user struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

func (u *user) login() string {
	if u == nil {
		return "ghost" // what GitHub shows in place of a deleted account
	}
	return u.Login
}

// label is an object, or in old answers only its name.
type label struct{ Name string }

func (l *label) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &l.Name)
	}
	var o struct {
		Name string `json:"name"`
	}
	err := json.Unmarshal(b, &o)
	l.Name = o.Name
	return err
}

type issue struct {
	Number        int             `json:"number"`
	Title         string          `json:"title"`
	Body          string          `json:"body"`
	State         string          `json:"state"`
	HTMLURL       string          `json:"html_url"`
	RepositoryURL string          `json:"repository_url"`
	User          *user           `json:"user"`
	Labels        []label         `json:"labels"`
	Assignees     []user          `json:"assignees"`
	Milestone     *milestone      `json:"milestone"`
	CreatedAt     time.Time       `json:"created_at"`
	UpdatedAt     time.Time       `json:"updated_at"`
	PullRequest   json.RawMessage `json:"pull_request"`
	Dependencies  struct {
		Total int `json:"total_blocked_by"`
	} `json:"issue_dependencies_summary"`
	SubIssues struct {
		Total int `json:"total"`
	} `json:"sub_issues_summary"`
}

type milestone struct {
	Title string `json:"title"`
}

func (i issue) isPull() bool { return len(i.PullRequest) > 0 && string(i.PullRequest) != "null" }

// project is the OWNER/NAME that the issue belongs to.
func (i issue) project() string {
	_, p, _ := strings.Cut(i.RepositoryURL, "/repos/")
	return p
}

type comment struct {
	ID        int64     `json:"id"`
	Body      string    `json:"body"`
	User      *user     `json:"user"`
	CreatedAt time.Time `json:"created_at"`
}

// Events of labels, in GitHub's spelling.
const (
	labelPut   = "labeled"   //nolint:misspell // GitHub's
	labelTaken = "unlabeled" //nolint:misspell // GitHub's
)

type event struct {
	Event     string    `json:"event"`
	Actor     *user     `json:"actor"`
	CreatedAt time.Time `json:"created_at"`
	Label     label     `json:"label"`
}

type pull struct {
	Number             int       `json:"number"`
	NodeID             string    `json:"node_id"`
	HTMLURL            string    `json:"html_url"`
	State              string    `json:"state"`
	Title              string    `json:"title"`
	Body               string    `json:"body"`
	Draft              bool      `json:"draft"`
	User               *user     `json:"user"`
	Head               branch    `json:"head"`
	Base               branch    `json:"base"`
	Labels             []label   `json:"labels"`
	Assignees          []user    `json:"assignees"`
	RequestedReviewers []user    `json:"requested_reviewers"`
	RequestedTeams     []team    `json:"requested_teams"`
	Mergeable          *bool     `json:"mergeable"`
	MergeableState     string    `json:"mergeable_state"`
	UpdatedAt          time.Time `json:"updated_at"`
}

type team struct {
	Slug string `json:"slug"`
}

type branch struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		FullName string `json:"full_name"`
	} `json:"repo"`
}
