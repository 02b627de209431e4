package githubtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// User is an account. Permission is "admin", "write", "read" or "none".
type User struct {
	Login      string
	ID         int64
	Bot        bool
	Permission string
}

// Issue is an issue, or a pull request if Pull is set.
type Issue struct {
	Number           int
	ID               int64
	Title, Body      string
	Author           string
	Labels           []string
	Assignees        []string
	Milestone        string
	Closed           bool
	Deleted          bool
	Moved            string // project that it was transferred to
	Unseen           bool   // ralph's token may not read that project
	Locked           bool   // only accounts with write permission may comment
	Converted        bool   // converted to a discussion: nobody may comment
	Created, Updated time.Time
	Comments         []*Comment
	Events           []Event
	Edits            []Edit
	BlockedBy        []int
	SubIssues        []int
	Pull             *Pull
}

// Comment is a comment on an issue or pull request.
type Comment struct {
	ID      int64
	Author  string
	Body    string
	Created time.Time
	Updated time.Time
}

// NodeID returns the comment's GraphQL ID.
func (c *Comment) NodeID() string { return fmt.Sprintf("IC_%d", c.ID) }

// Kinds of events, in GitHub's spelling.
const (
	Labelled   = "labeled"   //nolint:misspell // GitHub's
	Unlabelled = "unlabeled" //nolint:misspell // GitHub's
	Renamed    = "renamed"
)

// Event is an entry in the history of an issue.
type Event struct {
	Kind, Actor, Label, From, To string
	At                           time.Time
	id                           int64
}

// Edit is an edit of a body.
type Edit struct {
	By string // empty: a deleted account
	At time.Time
}

// Pull has the fields of a pull request that an issue does not have.
type Pull struct {
	Head, Base string
	Fork       bool // the head is in another repository
	SHA        string
	Draft      bool
	Merged     bool
	Mergeable  *bool
	Dirty      bool
	Reviewers  []string
	Teams      []string
	Reviews    []*Review
	AutoMerge  string // merge method; empty: off
	Queued     bool   // in the merge queue
}

// Check is a check run, or a commit status if Status is empty.
type Check struct {
	ID         int64
	Name       string
	Status     string // of a check run: queued, in_progress, completed; empty: this is a commit status
	Conclusion string // or the state of a commit status
	Text       string
	Actions    bool // run by GitHub Actions
	At         time.Time
}

// AddUser adds or replaces an account. It assigns an ID if there is none.
func (s *Server) AddUser(u User) User {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.ID == 0 {
		u.ID = s.id()
	}
	u.Permission = cmp.Or(u.Permission, "none")
	s.users[strings.ToLower(u.Login)] = &u
	return u
}

// AddIssue adds an issue and returns its number. The default author is ada, who also sets the labels. Like GitHub, it
// requires a title.
func (s *Server) AddIssue(i Issue) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addIssue(i).Number
}

func (s *Server) addIssue(i Issue) *Issue {
	if strings.TrimSpace(i.Title) == "" {
		s.t.Errorf("githubtest: an issue or pull request has no title")
	}
	at := s.now()
	i.Number, i.ID = len(s.issues)+1, s.id()
	i.Author = cmp.Or(i.Author, "ada")
	if s.users[strings.ToLower(i.Author)] == nil {
		s.users[strings.ToLower(i.Author)] = &User{Login: i.Author, ID: s.id(), Permission: "none"}
	}
	if i.Created.IsZero() {
		i.Created = at
	}
	i.Updated = at
	for _, l := range i.Labels {
		s.needLabel(l)
		i.Events = append(i.Events, Event{Kind: Labelled, Actor: "ada", Label: l, At: at, id: s.id()})
	}
	s.issues = append(s.issues, &i)
	return &i
}

// AddPull adds an open pull request and returns its number.
func (s *Server) AddPull(i Issue, p Pull) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Base = cmp.Or(p.Base, "main")
	p.SHA = cmp.Or(p.SHA, s.sha(p.Head))
	i.Pull = &p
	return s.addIssue(i).Number
}

// AddComment adds a comment to an issue, and returns its ID.
func (s *Server) AddComment(number int, author, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addComment(s.issues[number-1], author, body).ID
}

func (s *Server) addComment(i *Issue, author, body string) *Comment {
	at := s.now()
	c := &Comment{ID: s.id(), Author: author, Body: body, Created: at, Updated: at}
	i.Comments = append(i.Comments, c)
	i.Updated = at
	return c
}

// Do changes an issue like a person in the browser, without validation.
func (s *Server) Do(number int, f func(i *Issue, now time.Time)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.issues[number-1]
	at := s.now()
	i.Updated = at
	f(i, at)
}

// Issue returns a copy of an issue.
func (s *Server) Issue(number int) Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := *s.issues[number-1]
	i.Labels, i.Events = slices.Clone(i.Labels), slices.Clone(i.Events)
	i.Comments = nil
	for _, c := range s.issues[number-1].Comments {
		one := *c
		i.Comments = append(i.Comments, &one)
	}
	if i.Pull != nil {
		p := *i.Pull
		i.Pull = &p
	}
	return i
}

// Pulls returns the numbers of all pull requests.
func (s *Server) Pulls() (numbers []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.issues {
		if i.Pull != nil {
			numbers = append(numbers, i.Number)
		}
	}
	return numbers
}

// AddLabel adds a label to the project.
func (s *Server) AddLabel(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needLabel(name)
}

// Labels returns the project's labels.
func (s *Server) Labels() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.labels)
}

// needLabel creates the label if it does not exist and returns its spelling. The caller must hold mu.
func (s *Server) needLabel(name string) string {
	for _, l := range s.labels {
		if strings.EqualFold(l, name) {
			return l
		}
	}
	s.labels = append(s.labels, name)
	return name
}

// Require sets the checks that the base branch requires.
func (s *Server) Require(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = names
}

// SetCheck adds a check or status to a commit, or replaces the one with its name. Log is the log of an Actions job.
func (s *Server) SetCheck(sha string, c Check, log string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ID, c.At = s.id(), s.now()
	s.checks[sha] = slices.DeleteFunc(s.checks[sha], func(o *Check) bool { return o.Name == c.Name })
	s.checks[sha] = append(s.checks[sha], &c)
	if log != "" {
		s.logs[c.ID] = log
	}
}

// SetRepo sets the project's settings.
func (s *Server) SetRepo(private, archived, noIssues bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repo = repoState{private, archived, noIssues}
}
