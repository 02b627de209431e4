package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

const (
	answerTime = 10 * time.Second
	answerMax  = 16 << 20 // bytes of a response, and of one event

	failuresMax = 5 // consecutive failures after which a stream is given up
)

// Service is a client of a service's API.
type Service struct {
	address string // as the caller wrote it
	base    string
	token   string
	client  *http.Client
}

// NewService returns a client of the API at an address: http://HOST:PORT, HOST:PORT or unix:PATH. The token may be empty.
func NewService(address, token string) (*Service, error) {
	s := &Service{address: address, base: address, token: token}
	transport := &http.Transport{ResponseHeaderTimeout: answerTime, MaxConnsPerHost: followMax + 8}
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		s.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	} else if _, _, err := net.SplitHostPort(address); err == nil && !strings.Contains(address, "://") {
		s.base = "http://" + address
	}
	s.base = strings.TrimSuffix(s.base, "/")
	if u, err := url.Parse(s.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a service", address)
	}
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return errors.New("the service answers with a redirect") // following it would send the token elsewhere
	}}
	return s, nil
}

// Close closes idle connections.
func (s *Service) Close() { s.client.CloseIdleConnections() }

// ErrNoService is returned when nothing listens at the address, ErrOther when the answer is not from ralph's service.
var (
	ErrNoService = errors.New("no service listens")
	ErrOther     = errors.New("does not answer as ralph's service")
)

// notRalphError returns the error for an address whose answer is not from ralph's service.
func (s *Service) notRalphError(why error) error {
	return fmt.Errorf("what listens at %s %w: %w", s.address, ErrOther, why)
}

// RefusedError is an error response of the service.
type RefusedError struct {
	Code   int    // HTTP status
	Detail string // the service's explanation, which is untrusted text; may be empty
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("the service answers %d %s", e.Code, http.StatusText(e.Code))
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// open sends a request and returns the body of the response. The caller closes it.
func (s *Service) open(ctx context.Context, method, path, last string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, nil)
	if err != nil {
		return nil, err
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := s.client.Do(r)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w at %s", ErrNoService, s.address)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, s.notRalphError(failed.Err)
	}
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		refused := RefusedError{Code: answer.StatusCode}
		_ = json.NewDecoder(io.LimitReader(answer.Body, answerMax)).Decode(&refused)
		refused.Code = answer.StatusCode
		return nil, &refused
	}
	return answer.Body, nil
}

// ask sends a request and decodes the response into a value, unless into is nil.
func (s *Service) ask(ctx context.Context, method, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	body, err := s.open(ctx, method, path, "")
	if err != nil {
		return err
	}
	defer body.Close()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(body, answerMax)).Decode(into); err != nil {
		return s.notRalphError(err)
	}
	return nil
}

// Ready returns nil if the service answers, and ErrNoService if nothing listens.
func (s *Service) Ready(ctx context.Context) error {
	return s.ask(ctx, http.MethodGet, "/healthz", nil)
}

// Project is a project of the service.
type Project struct {
	Name, Repo, State, Problem string
	WaitsForSlot               bool `json:"waits_for_slot"`
	Running                    []struct {
		Run, Issue, Title, Machine, Doing string
		Stage                             journal.Stage
		Started, Ended                    time.Time
		Usage                             agents.Usage
	}
}

// Projects lists the projects of the service.
func (s *Service) Projects(ctx context.Context) ([]Project, error) {
	var answer struct{ Projects []Project }
	err := s.ask(ctx, http.MethodGet, "/v1/projects", &answer)
	refused, _ := errors.AsType[*RefusedError](err)
	switch {
	case err == nil && answer.Projects == nil: // a service without projects has an empty list
		err = s.notRalphError(errors.New("its answer names no projects"))
	case refused != nil && refused.Code == http.StatusNotFound:
		err = s.notRalphError(err)
	}
	return answer.Projects, err
}

// Pause pauses or resumes a project. A paused project starts no new runs.
func (s *Service) Pause(ctx context.Context, project string, paused bool) error {
	verb := "/resume"
	if paused {
		verb = "/pause"
	}
	return s.ask(ctx, http.MethodPost, "/v1/projects/"+url.PathEscape(project)+verb, nil)
}

// Runs implements Source.
func (s *Service) Runs(ctx context.Context) (runs []Run, err error) {
	projects, err := s.Projects(ctx)
	for _, p := range projects {
		for _, r := range p.Running {
			if !r.Ended.IsZero() { // the service will remove it from the list
				continue
			}
			runs = append(runs, Run{
				Project: p.Name,
				ID:      r.Run,
				Key:     r.Issue,
				Title:   r.Title,
				Started: r.Started,
				Used:    r.Usage,
				Repo:    p.Repo,
				Machine: r.Machine,
				Stage:   r.Stage,
				Doing:   r.Doing,
			})
		}
	}
	return runs, err
}

// Stop implements Source.
func (s *Service) Stop(ctx context.Context, r Run) error {
	if err := s.ask(ctx, http.MethodPost, "/v1/projects/"+url.PathEscape(r.Project)+
		"/issues/"+url.PathEscape(r.Key)+"/stop?run="+url.QueryEscape(r.ID), nil); err != nil {
		return fmt.Errorf("stop %s: %w", r.Key, err)
	}
	return nil
}

// Follow implements Source. It reconnects after a broken stream and continues after the last event.
func (s *Service) Follow(ctx context.Context, r Run, each func(journal.Event)) {
	last := ""
	pause := time.NewTimer(0)
	defer pause.Stop()
	for failures := 0; failures < failuresMax; failures++ {
		select {
		case <-pause.C:
			pause.Reset(runsInterval)
		case <-ctx.Done():
			return
		}
		body, err := s.open(ctx, http.MethodGet, "/v1/projects/"+url.PathEscape(r.Project)+"/runs/"+url.PathEscape(r.ID)+"/events", last)
		if err != nil {
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = body.Close() })
		ended, got := stream(body, &last, each)
		stop()
		_ = body.Close()
		if ended {
			return
		}
		if got {
			failures = 0
		}
	}
}

// stream reads server-sent events. ended reports that the run has ended, got that at least one event arrived.
func stream(body io.Reader, last *string, each func(journal.Event)) (ended, got bool) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, answerMax)
	var kind, data, id string
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			data = value
		case "":
			if lines.Text() != "" || data == "" { // a comment, or nothing
				continue
			}
			if kind == "end" {
				return true, true
			}
			var e journal.Event
			if json.Unmarshal([]byte(data), &e) == nil {
				each(e)
			}
			*last, got = id, true
			kind, data = "", ""
		}
	}
	return false, got
}
