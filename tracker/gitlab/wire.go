package gitlab

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// What ralph reads of GitLab's answers.

type user struct {
	ID       int    `json:"id"`
	Username string `json:"username"`
	State    string `json:"state"`
	Bot      *bool  `json:"bot"`      // only of one user
	Admin    bool   `json:"is_admin"` // only of oneself
}

func (u user) whole() bool { return u.ID > 0 }

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

func (m member) whole() bool { return m.State != "" }

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

func (i issue) whole() bool { return i.IID > 0 && (i.State == "opened" || i.State == "closed") }

// listed is an issue of a list that is decoded by itself, so that one which cannot be does not hide the others.
type listed struct{ json.RawMessage }

func (listed) whole() bool { return true }

func (l listed) decode() (issue, error) {
	var i issue
	if err := json.Unmarshal(l.RawMessage, &i); err != nil {
		return issue{}, fmt.Errorf("read the issue: %w", err)
	}
	if !i.whole() {
		return issue{}, fmt.Errorf("read the issue: it has number %d and state %q", i.IID, i.State)
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

func (n note) whole() bool { return n.ID > 0 }

type labelEvent struct {
	ID     int    `json:"id"`
	Action string `json:"action"`
	User   *user  `json:"user"`
	Label  *struct {
		Name string `json:"name"`
	} `json:"label"`
	Created time.Time `json:"created_at"`
}

func (e labelEvent) whole() bool { return e.ID > 0 }

type label struct {
	Name string `json:"name"`
}

func (l label) whole() bool { return l.Name != "" }

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

func (m merge) whole() bool { return m.IID > 0 && m.State != "" }

// own reports that the request comes from the project itself, not from a fork.
func (m merge) own() bool { return m.SourceProject == m.TargetProject }

type pipeline struct {
	ID        int       `json:"id"`
	ProjectID int       `json:"project_id"`
	Status    string    `json:"status"`
	WebURL    string    `json:"web_url"`
	Updated   time.Time `json:"updated_at"`
}

type job struct {
	ID           int    `json:"id"`
	Name         string `json:"name"`
	Stage        string `json:"stage"`
	Status       string `json:"status"`
	AllowFailure bool   `json:"allow_failure"`
	Reason       string `json:"failure_reason"`
}

func (j job) whole() bool { return j.ID > 0 }

type diffVersion struct {
	Head    string    `json:"head_commit_sha"`
	Created time.Time `json:"created_at"`
}

func (v diffVersion) whole() bool { return v.Head != "" }

type discussion struct {
	Notes []note `json:"notes"`
}

func (d discussion) whole() bool { return len(d.Notes) > 0 }

type accessToken struct {
	Scopes  []string `json:"scopes"`
	Active  bool     `json:"active"`
	Expires string   `json:"expires_at"`
}

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
