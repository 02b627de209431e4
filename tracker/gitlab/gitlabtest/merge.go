package gitlabtest

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Merge is a merge request. Tests read it through Project.Merges.
type Merge struct {
	IID          int
	Title        string
	Description  string
	Source       string
	Target       string
	State        string // "opened", "closed", "merged"
	Author       *User
	Labels       []string
	Reviewers    []*User
	Assignees    []*User
	SHA          string
	Conflicts    bool
	MergeStatus  string // detailed_merge_status; empty: "mergeable"
	RemoveSource bool
	Writes       int  // number of writes through the API
	AutoMerge    bool // merge once the pipeline has passed
	Train        bool // on the merge train

	id       int
	created  time.Time
	updated  time.Time
	versions []version
	threads  []*thread
	pipeline *pipeline
}

type version struct {
	id  int
	sha string
	at  time.Time
}

type pipeline struct {
	id     int
	status string
	sha    string
	ref    string
	source string
	at     time.Time
}

// AddMerge creates a merge request like a person, and returns its number.
func (p *Project) AddMerge(m Merge) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.addMerge(&m).IID
}

func (p *Project) addMerge(m *Merge) *Merge {
	p.s.requireTitle(m.Title)
	m.id, m.IID, m.State = p.s.id(), len(p.merges)+1, cmp.Or(m.State, "opened")
	m.created = p.s.now()
	m.updated = m.created
	p.merges = append(p.merges, m)
	p.refresh(m)
	return m
}

// refresh updates the head from the source branch.
func (p *Project) refresh(m *Merge) {
	sha := cmp.Or(p.branch(m.Source), m.SHA, strings.Repeat("1", 40))
	if n := len(m.versions); n > 0 && m.versions[n-1].sha == sha {
		return
	}
	m.SHA = sha
	m.versions = append(m.versions, version{p.s.id(), sha, p.s.now()})
}

// Push moves a merge request's source branch to another commit in a project without a repository.
func (p *Project) Push(iid int, sha string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	m.SHA = sha
	p.refresh(m)
}

// Merges returns copies of the merge requests, oldest first.
func (p *Project) Merges() []Merge {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	var out []Merge
	for _, m := range p.merges {
		out = append(out, *m)
	}
	return out
}

// SetMerge changes a merge request without the API.
func (p *Project) SetMerge(iid int, edit func(*Merge)) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	m := p.merge(iid)
	edit(m)
	m.updated = p.s.now()
}

func (p *Project) merge(iid int) *Merge {
	if iid < 1 || iid > len(p.merges) {
		return nil
	}
	return p.merges[iid-1]
}

// closingMerges returns the merge requests that close an issue when they are merged.
func (p *Project) closingMerges(i *Issue) (found []*Merge) {
	pattern := regexp.MustCompile(fmt.Sprintf(`(?i)\b(?:close[sd]?|closing|fix(?:e[sd]|ing)?|resolve[sd]?|resolving|implement(?:s|ed|ing)?):? #%d\b`, i.iid))
	for _, m := range p.merges {
		if pattern.MatchString(m.Description) {
			found = append(found, m)
		}
	}
	return found
}
