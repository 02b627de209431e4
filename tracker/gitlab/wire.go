package gitlab

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
)

// What ralph reads of GitLab's answers.

type user struct {
	ID       int    `json:"id"`
	Username string `json:"username"`
	State    string `json:"state"`
	Bot      *bool  `json:"bot"`      // only of one user
	Admin    bool   `json:"is_admin"` // only of oneself
}

// Whole is of an account that is asked for.
func (u user) Whole() bool { return u.ID > 0 && u.Username != "" }

// stated reports that an account within something else names nobody, as of deleted ones, or somebody in full.
func (u *user) stated() bool { return u == nil || u.Whole() }

func (u *user) name() string {
	if u == nil {
		return "ghost" // whom GitLab shows in place of a deleted account
	}
	return u.Username
}

func (u *user) id() int {
	if u == nil {
		return 0
	}
	return u.ID
}

type member struct {
	ID     int    `json:"id"`
	State  string `json:"state"`
	Access int    `json:"access_level"`
}

// Whole is of a person's membership.
func (m member) Whole() bool { return m.State != "" }

type issue struct {
	ID        int       `json:"id"`
	IID       int       `json:"iid"`
	ProjectID int       `json:"project_id"`
	Title     string    `json:"title"`
	Body      string    `json:"description"`
	State     string    `json:"state"`
	Type      string    `json:"issue_type"`
	WebURL    string    `json:"web_url"`
	Author    *user     `json:"author"`
	Assignees []user    `json:"assignees"`
	Labels    []string  `json:"labels"`
	Weight    int       `json:"weight"`
	Created   time.Time `json:"created_at"`
	Updated   time.Time `json:"updated_at"`
	Merges    int       `json:"merge_requests_count"`  // of requests that close it, in any state
	Blocking  int       `json:"blocking_issues_count"` // how many open issues wait for it; absent where links cannot block
	Milestone *struct {
		Title string `json:"title"`
	} `json:"milestone"`
	References struct {
		Full string `json:"full"`
	} `json:"references"`
	LinkType string `json:"link_type"` // only in a list of links
}

// Whole wants the labels too: an issue without them would seem to be ralph's no more.
func (i issue) Whole() bool {
	return i.IID > 0 && i.ProjectID > 0 && (i.State == "opened" || i.State == "closed") && i.Labels != nil && i.Author.stated()
}

// listed is an issue of a list that is decoded by itself, so that one which cannot be does not hide the others.
type listed struct{ json.RawMessage }

// Whole leaves it to the decoding.
func (listed) Whole() bool { return true }

func (l listed) decode() (issue, error) {
	var i issue
	if err := forge.Decode(l.RawMessage, &i); err != nil {
		return issue{}, fmt.Errorf("read the issue: %w", err)
	}
	return i, nil
}

type note struct {
	ID         int       `json:"id"`
	Body       string    `json:"body"`
	Author     *user     `json:"author"`
	System     bool      `json:"system"`
	Internal   bool      `json:"internal"`
	Secret     bool      `json:"confidential"` // what internal was called
	Created    time.Time `json:"created_at"`
	Resolvable bool      `json:"resolvable"`
	Resolved   bool      `json:"resolved"`
	Position   *struct {
		Path string `json:"new_path"`
		Line int    `json:"new_line"`
	} `json:"position"`
}

// Whole is of one of a list, or just made.
func (n note) Whole() bool { return n.ID > 0 && !n.Created.IsZero() && n.Author.stated() }

type labelEvent struct {
	ID     int    `json:"id"`
	Action string `json:"action"`
	User   *user  `json:"user"`
	Label  *struct {
		Name string `json:"name"`
	} `json:"label"`
	Created time.Time `json:"created_at"`
}

// Whole wants what tells who did what when. A label that was deleted since is none.
func (e labelEvent) Whole() bool {
	return e.ID > 0 && e.Action != "" && !e.Created.IsZero() && e.User.stated() && (e.Label == nil || e.Label.Name != "")
}

type label struct {
	Name string `json:"name"`
}

// Whole is of an entry of a list.
func (l label) Whole() bool { return l.Name != "" }

type merge struct {
	IID           int       `json:"iid"`
	Title         string    `json:"title"`
	Body          string    `json:"description"`
	State         string    `json:"state"`
	Draft         bool      `json:"draft"`
	SHA           string    `json:"sha"`
	Source        string    `json:"source_branch"`
	Target        string    `json:"target_branch"`
	SourceProject int       `json:"source_project_id"`
	TargetProject int       `json:"target_project_id"`
	WebURL        string    `json:"web_url"`
	Author        *user     `json:"author"`
	Labels        []string  `json:"labels"`
	Reviewers     []user    `json:"reviewers"`
	Assignees     []user    `json:"assignees"`
	Updated       time.Time `json:"updated_at"`
	Conflicts     bool      `json:"has_conflicts"`
	Status        string    `json:"detailed_merge_status"`
	HeadPipeline  *pipeline `json:"head_pipeline"` // only of one request
}

// Whole wants what ralph keeps of a request, and what tells whose it is. The head is not known yet of a request that was
// made a moment ago.
func (m merge) Whole() bool {
	return m.IID > 0 && m.WebURL != "" && m.State != "" && m.Source != "" && m.Target != "" && m.TargetProject > 0 &&
		m.Labels != nil && m.Author.stated() && (m.HeadPipeline == nil || m.HeadPipeline.Whole())
}

// own reports that the request comes from the project itself, not from a fork.
func (m merge) own() bool { return m.SourceProject == m.TargetProject }

type pipeline struct {
	ID        int       `json:"id"`
	ProjectID int       `json:"project_id"`
	Status    string    `json:"status"`
	WebURL    string    `json:"web_url"`
	Updated   time.Time `json:"updated_at"`
}

// Whole is of a request's pipeline.
func (p pipeline) Whole() bool { return p.ID > 0 && p.Status != "" }

type job struct {
	ID           int    `json:"id"`
	Name         string `json:"name"`
	Stage        string `json:"stage"`
	Status       string `json:"status"`
	AllowFailure bool   `json:"allow_failure"`
	Reason       string `json:"failure_reason"`
}

// Whole is of an entry of a list.
func (j job) Whole() bool { return j.ID > 0 && j.Status != "" }

type diffVersion struct {
	Head    string    `json:"head_commit_sha"`
	Created time.Time `json:"created_at"`
}

// Whole is of an entry of a list.
func (v diffVersion) Whole() bool { return v.Head != "" && !v.Created.IsZero() }

type discussion struct {
	Notes forge.List[note] `json:"notes"`
}

// Whole is of an entry of a list.
func (d discussion) Whole() bool { return len(d.Notes) > 0 && d.Notes.Whole() }

type accessToken struct {
	Scopes  []string `json:"scopes"`
	Active  bool     `json:"active"`
	Expires string   `json:"expires_at"`
}

// Whole is of the token that asks.
func (a accessToken) Whole() bool { return a.Scopes != nil }

type projectInfo struct {
	ID            int    `json:"id"`
	Path          string `json:"path_with_namespace"`
	Archived      bool   `json:"archived"`
	IssuesAccess  string `json:"issues_access_level"`
	MergesEnabled *bool  `json:"merge_requests_enabled"`
	Permissions   struct {
		Project *access `json:"project_access"`
		Group   *access `json:"group_access"`
	} `json:"permissions"`
}

// Whole is of the project that is asked for.
func (p projectInfo) Whole() bool { return p.ID > 0 && p.Path != "" }

type access struct {
	Level int `json:"access_level"`
}

// level is the role of the token's account, 0 when it has none.
func (p projectInfo) level() int {
	level := 0
	for _, a := range []*access{p.Permissions.Project, p.Permissions.Group} {
		if a != nil {
			level = max(level, a.Level)
		}
	}
	return level
}

// isBot reports an account that is no person's. Old versions do not say so; of them the names tell that GitLab gives to
// the bots of tokens. A name only ever takes trust away.
func (u user) isBot() bool {
	named := (strings.HasPrefix(u.Username, "project_") || strings.HasPrefix(u.Username, "group_")) && strings.Contains(u.Username, "_bot")
	return named || (u.Bot != nil && *u.Bot)
}
