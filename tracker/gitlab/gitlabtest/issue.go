package gitlabtest

import (
	"fmt"
	"slices"
	"time"
)

// Issue is an issue to add.
type Issue struct {
	Title        string
	Description  string
	Author       *User
	Labels       []string
	Closed       bool
	Type         string // "issue" by default, or "incident", "task", …
	Milestone    string
	Assignees    []*User
	Confidential bool
	Locked       bool // only members may comment
	Deleted      bool
	MovedTo      int       // ID of the issue in another project that it was moved to
	Created      time.Time // zero: now

	id, iid, author int
	updated         time.Time
	notes           []*note
	events          []*labelEvent
	links           []issueLink
	writes          int // number of writes through the API
}

type labelEvent struct {
	id     int
	user   int
	label  *label
	action string
	at     time.Time
}

// issueLink is a link to another issue.
type issueLink struct {
	project *Project
	issue   *Issue
	kind    string // "is_blocked_by", "blocks", "relates_to"
}

// AddIssue creates an issue and returns its number. Its author sets the labels. A title is required, as on GitLab.
func (p *Project) AddIssue(i Issue) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.requireTitle(i.Title)
	i.id, i.iid = p.s.id(), len(p.issues)+1
	if i.Author != nil {
		i.author = i.Author.ID
	}
	at := p.s.now()
	if i.Created.IsZero() {
		i.Created = at
	}
	i.updated = at
	names := i.Labels
	i.Labels = nil
	p.issues = append(p.issues, &i)
	for _, name := range names {
		p.setLabel(&i, i.author, name, true)
	}
	return i.iid
}

func (p *Project) issue(iid int) *Issue {
	if iid < 1 || iid > len(p.issues) {
		return nil
	}
	return p.issues[iid-1]
}

// setLabel sets or removes a label and records the event.
func (p *Project) setLabel(i *Issue, user int, name string, on bool) {
	has := slices.Contains(i.Labels, name)
	if has == on {
		return
	}
	action := "remove"
	if on {
		action = "add"
		i.Labels = append(i.Labels, name)
		slices.Sort(i.Labels)
	} else {
		i.Labels = slices.DeleteFunc(i.Labels, func(l string) bool { return l == name })
	}
	e := &labelEvent{id: p.s.id(), user: user, label: p.label(name), action: action, at: p.s.now()}
	i.events = append(i.events, e)
	i.updated = e.at
}

// Label sets a label on an issue in the name of an account.
func (p *Project) Label(by *User, iid int, name string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.setLabel(p.issue(iid), by.ID, name, true)
}

// Unlabel removes a label.
func (p *Project) Unlabel(by *User, iid int, name string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.setLabel(p.issue(iid), by.ID, name, false)
}

// Close closes an issue.
func (p *Project) Close(iid int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.Closed, i.updated = true, p.s.now()
}

// SetIssue changes an issue like a person in the browser.
func (p *Project) SetIssue(iid int, change func(*Issue)) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	change(i)
	i.updated = p.s.now()
}

// Describe edits an issue's description. If ticked, the edit also ticks a task, and GitLab notes only that.
func (p *Project) Describe(by *User, iid int, text string, ticked bool) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	i.Description = text
	said := "changed the description"
	if ticked {
		said = "marked the checklist item **one** as completed"
	}
	p.addNote(i, by.ID, said, true)
}

// Rename edits an issue's title.
func (p *Project) Rename(by *User, iid int, title string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	i := p.issue(iid)
	was := i.Title
	p.s.requireTitle(title)
	i.Title = title
	p.addNote(i, by.ID, fmt.Sprintf("changed title from **%s** to **%s**", was, title), true)
}

// Block makes one issue block another.
func (p *Project) Block(blocker, blocked int) { p.BlockFrom(p, blocker, blocked) }

// BlockFrom makes an issue of another project block one of this project.
func (p *Project) BlockFrom(other *Project, blocker, blocked int) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	a, b := other.issue(blocker), p.issue(blocked)
	a.links = append(a.links, issueLink{p, b, "blocks"})
	b.links = append(b.links, issueLink{other, a, "is_blocked_by"})
}

// IssueLabels returns the labels of an issue.
func (p *Project) IssueLabels(iid int) []string {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return slices.Clone(p.issue(iid).Labels)
}

// Writes returns the number of writes to an issue through the API.
func (p *Project) Writes(iid int) int {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.issue(iid).writes
}
