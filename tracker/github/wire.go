package github

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// What go-github v62 has no fields for, or decodes less strictly than ralph wants.

type user struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// Whole is of an account that is asked for.
func (u user) Whole() bool { return u.ID > 0 && u.Login != "" && u.Type != "" }

// stated reports that an account within something else names nobody, as of deleted ones, or somebody in full.
func (u *user) stated() bool { return u == nil || (u.ID != 0 && u.Login != "") }

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

// Whole is of an entry of a list.
func (l label) Whole() bool { return l.Name != "" }

type issue struct {
	Number        int               `json:"number"`
	Title         string            `json:"title"`
	Body          string            `json:"body"`
	State         string            `json:"state"`
	HTMLURL       string            `json:"html_url"`
	RepositoryURL string            `json:"repository_url"`
	User          *user             `json:"user"`
	Labels        forge.List[label] `json:"labels"`
	Assignees     []user            `json:"assignees"`
	Milestone     *milestone        `json:"milestone"`
	CreatedAt     time.Time         `json:"created_at"`
	UpdatedAt     time.Time         `json:"updated_at"`
	PullRequest   json.RawMessage   `json:"pull_request"`
	Dependencies  struct {
		Total int `json:"total_blocked_by"`
	} `json:"issue_dependencies_summary"`
	SubIssues struct {
		Total int `json:"total"`
	} `json:"sub_issues_summary"`
}

// Whole wants the labels too: an issue without them would seem to be ralph's no more.
func (i issue) Whole() bool {
	return i.Number > 0 && (i.State == "open" || i.State == "closed") && i.Labels.Whole() && i.User.stated()
}

// listed is an issue of a list that is decoded by itself, so that one which cannot be does not hide the others.
type listed struct{ json.RawMessage }

// Whole leaves it to the decoding.
func (listed) Whole() bool { return true }

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

// Whole is of one of a list, or just made.
func (c comment) Whole() bool { return c.ID > 0 && !c.CreatedAt.IsZero() && c.User.stated() }

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

// Whole wants the label of what happened to a label.
func (e event) Whole() bool {
	named := e.Label.Name != "" || (e.Event != labelPut && e.Event != labelTaken)
	return e.Event != "" && !e.CreatedAt.IsZero() && named && e.Actor.stated()
}

type pull struct {
	Number             int               `json:"number"`
	NodeID             string            `json:"node_id"`
	HTMLURL            string            `json:"html_url"`
	State              string            `json:"state"`
	Title              string            `json:"title"`
	Body               string            `json:"body"`
	Draft              bool              `json:"draft"`
	User               *user             `json:"user"`
	Head               branch            `json:"head"`
	Base               branch            `json:"base"`
	Labels             forge.List[label] `json:"labels"`
	Assignees          []user            `json:"assignees"`
	RequestedReviewers []user            `json:"requested_reviewers"`
	RequestedTeams     []team            `json:"requested_teams"`
	Mergeable          *bool             `json:"mergeable"`
	MergeableState     string            `json:"mergeable_state"`
	UpdatedAt          time.Time         `json:"updated_at"`
}

// Whole wants what ralph keeps of a request, and what tells whose it is.
func (p pull) Whole() bool {
	return p.Number > 0 && p.HTMLURL != "" && p.State != "" && p.Head.Ref != "" && p.Head.SHA != "" && p.Base.Ref != "" &&
		p.Labels.Whole() && p.User.stated()
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
