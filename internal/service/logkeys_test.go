package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"testing"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
)

// The keys of log attributes are words without spaces.
func TestLogKeys(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := servicetest.New(t, "p", 0)
	project := p.Project()
	project.Load = func(context.Context) (service.Setup, error) { return service.Setup{}, errors.New("no such key") }
	s := service.New(service.Config{Log: slog.New(slog.NewJSONHandler(&b, nil))})
	s.Apply(t.Context(), []service.Project{project}, 0)
	until(t, s, "p", func(now service.Status) bool { return now.Problem != "" })
	s.Kill()
	s.Wait()
	for line := range bytes.Lines(b.Bytes()) {
		var keys map[string]any
		if err := json.Unmarshal(line, &keys); err != nil {
			t.Fatal(err)
		}
		for key := range keys {
			if !regexp.MustCompile(`^[a-z][a-z_]*$`).MatchString(key) {
				t.Errorf("key %q in %s", key, line)
			}
		}
	}
	if b.Len() == 0 {
		t.Error("nothing in the log")
	}
}
