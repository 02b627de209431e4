package agents

import (
	"fmt"
	"strings"
	"testing"
)

// TestClasses pins the meaning of each kind of structural evidence.
func TestClasses(t *testing.T) {
	t.Parallel()
	evidence := map[Class][]Class{
		"": {StatusClass(0), StatusClass(200), StatusClass(399), claudeErrorClass("unknown"), codexCodeClass("")},
		Auth: {
			StatusClass(401), StatusClass(403), claudeErrorClass("permission_error"), codexCodeClass("invalid_api_key"),
		},
		NoCredit:  {StatusClass(402), claudeErrorClass("billing_error"), codexCodeClass("insufficient_quota")},
		RateLimit: {StatusClass(429), claudeErrorClass("rate_limit"), codexCodeClass("rate_limit_exceeded")},
		Overload: {
			StatusClass(408), StatusClass(500), StatusClass(503), StatusClass(529), claudeErrorClass("server_error"),
			codexCodeClass("server_is_overloaded"),
		},
		Unreachable:   {claudeErrorClass("connection_failed"), codexTextClass("Connection failed: x")},
		ModelNotFound: {StatusClass(404), claudeErrorClass("model_not_found"), codexCodeClass("model_not_found")},
		BadRequest: {
			StatusClass(400), StatusClass(413), StatusClass(422), claudeErrorClass("request_too_large"),
			codexCodeClass("context_length_exceeded"),
		},
	}
	for want, classes := range evidence {
		for i, got := range classes {
			if got != want {
				t.Errorf("evidence %d of %q means %q", i, want, got)
			}
		}
	}
	for class, want := range map[Class]string{
		RateLimit: "true true", Overload: "true true", Unreachable: "true true", Auth: "true true", NoCredit: "true true", BadRequest: "false true",
		ModelNotFound: "false true", NotStarted: "false true", MaxTurns: "false false", Killed: "false false",
		OtherFailure: "false false",
	} {
		if got := fmt.Sprint(class.Unavailable(), class.Fatal()); got != want {
			t.Errorf("%s: unavailable, fatal are %s, want %s", class, got, want)
		}
	}
}

func TestSignalOf(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{
		0: "", 1: "", 128: "", 129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 134: "SIGABRT", 137: "SIGKILL",
		139: "SIGSEGV", 143: "SIGTERM", 145: "", 255: "",
	} {
		if got := signalOf(Ending{ExitCode: code}); got != want {
			t.Errorf("status %d: %q, want %q", code, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"":                              "",
		" a \r\n\tb ":                   "a b",
		"\x1b[31mred\x00":               "[31mred",
		"a\u202eb\u200b\U000e0041c":     "abc",
		"x\xff\xfey \uFFFD":             "xy \uFFFD",
		"\u2028漢字":                      "漢字",
		"0123456789":                    "0123456789",
		"0123456789a":                   "0123456789…",
		strings.Repeat(" ", 1000) + "a": "…",
	} {
		if got := Clip(s, 10); got != want {
			t.Errorf("Clip(%.40q) = %q, want %q", s, got, want)
		}
	}
}
