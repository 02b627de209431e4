package trackertest

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
)

// Forge is a tracker that also hosts the code.
type Forge interface {
	tracker.Tracker
	tracker.Approver
	tracker.Requester
	tracker.RejectionReader
	tracker.RequestLister
	tracker.Follower
	tracker.Commander
}

// Person is an account of a forge. Accounts that a test names without Admit are strangers, who may only comment.
type Person struct {
	Name   string
	ID     int64 // 0: any
	Bot    bool
	Writes bool // may write to the project; otherwise may only read
}

// Request is a request as people see it. A new one ignores Number, Labels, Reviewers and Assignees.
type Request struct {
	Number                       int
	By, Head, Base, Title, Body  string // default main
	Commit                       string // head commit; empty: any
	State                        string // open (or empty), closed or merged
	Draft, Conflicts             bool
	Failed                       string // name of a failed check, which is also its log
	Labels, Reviewers, Assignees []string
}

// Site is a new project on a forge or its fake, with functions for people's actions. Ralph's account and ada may write.
type Site struct {
	Server *forgetest.Server
	Ralph  string // name of ralph's account
	Token  string // the tracker's
	// Open makes a new tracker for the project, like another process, and closes it at the end of the test.
	Open  func(t *testing.T, edits ...func(*forge.Config)) Forge
	Admit func(Person)
	// HidePeople keeps ralph from listing the accounts with write permission. It may still look up one account.
	HidePeople func()

	Issue func(Seed) int
	Label func(by string, issue int, label string, on bool)
	Edit  func(by string, issue int, title, body string) // an empty title or body is not changed

	Request  func(Request) int
	Requests func() []Request // oldest first
	Amend    func(request int, change func(*Request))
	// Review requests changes. Remark starts a thread on a line and returns its ID. Reply adds a comment to a thread and returns
	// the ID of a command in it. Thread returns the texts in a thread after the first comment.
	Review func(by string, request int, body string)
	Remark func(by string, request int, body string) string
	Reply  func(by string, request int, thread, body string) string
	Thread func(request int, thread string) []string

	// Say adds a comment to an issue or a request, and returns the ID of a command in it.
	Say func(by string, number int, request bool, body string) string
	// Texts returns the texts of ralph's account there.
	Texts func(number int, request bool) []string
	// React adds an emoji to a comment as ada; Signs returns those of ralph's account.
	React func(id, emoji string)
	Signs func(id string) []string
}

// Route is a kind of API request: its method, and a regular expression for its path.
type Route struct{ Method, Path string }

func (r Route) matches(c forgetest.Call) bool {
	return c.Method == r.Method && regexp.MustCompile(r.Path).MatchString(c.Path)
}

// Host adapts a forge to the suite of forges.
type Host struct {
	New func(t *testing.T) *Site
	// People matches the paths of requests about people; PeopleList is the path suffix of the list of those who may write.
	People, PeopleList string
	AsksBots           bool // the tracker checks for each trusted person whether it is a bot
	// Plain matches the paths of answers that need no form or may be "not found", such as logs and permissions.
	Plain  string
	AtOnce int // number of requests that the tracker checks in parallel
	// Routes are the calls at the end of a run, by the names in [Host.callRoute].
	Routes map[string]Route
}

// RunForge runs the suite for forges, in addition to [Run] and [RunForgeLarge].
func RunForge(t *testing.T, h Host) {
	h.run(t, map[string]func(*testing.T, Host){
		"CrowdOfReviewers": crowdOfReviewers, "PeopleFail": peopleFail, "PeopleUnknown": peopleUnknown, "Comments": comments,
		"Approved": approved, "TextBeforeLabel": textBeforeLabel, "Taken": taken, "TakenByOutsider": takenByOutsider, "Filters": filters,
		"ReportForged": reportForged, "ReportTwice": reportTwice, "ReportRuns": reportRuns, "ReportTooLong": reportTooLong,
		"OpenRequest": openRequest, "RequestAmongOthers": requestAmongOthers, "RequestUnsure": requestUncertain, "RequestRefused": requestRefused,
		"RequestsOwn": requestsOwn, "FollowUps": followUps, "FollowUpsSideBySide": followUpsSideBySide, "Lies": emptyAnswers,
		"TokenRefused": tokenRefused, "LateToShow": lateIssue, "LateCalls": lateCalls, "Hanging": hanging, "TokenNotLogged": tokenNotLogged,
		"LeadsElsewhere": redirectsToLogin,
	})
}

// RunForgeLarge runs the cases with many people, issues or rounds, which are slow under the race detector.
func RunForgeLarge(t *testing.T, h Host) {
	h.run(t, map[string]func(*testing.T, Host){
		"CrowdIsCheap": crowdListedOnce, "CrowdBeyondTheCap": crowdBeyondLimit, "PeopleUnfinished": peopleIncomplete, "Unchanged": unchanged,
		"FaultAtEveryCall": faultAtEveryCall,
	})
}

func (h Host) run(t *testing.T, cases map[string]func(*testing.T, Host)) {
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, h)
		})
	}
}

// openWired opens a tracker whose requests pass through a server of its own, which records them and injects faults.
func (s *Site) openWired(t *testing.T, edits ...func(*forge.Config)) (Forge, *forgetest.Server) {
	t.Helper()
	w := forgetest.NewServer(t, s.Server, nil)
	return s.Open(t, append(edits, func(c *forge.Config) { c.HTTP.Base = w.Transport() })...), w
}

// peopleCalls returns the number of calls about people, and the status of the first.
func (h Host) peopleCalls(calls []forgetest.Call) (n, first int) {
	people := regexp.MustCompile(h.People)
	calls = slices.DeleteFunc(calls, func(c forgetest.Call) bool { return !people.MatchString(c.Path) })
	if len(calls) == 0 {
		return 0, 0
	}
	return len(calls), calls[0].Status
}

// botChecks returns the number of requests that check whether trusted people are bots.
func (h Host) botChecks(trusted int) int {
	if h.AsksBots {
		return trusted
	}
	return 0
}

func key(n int) string { return strconv.Itoa(n) }
