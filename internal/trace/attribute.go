package trace

import (
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// textLimit bounds an attribute's text, in bytes.
const textLimit = 200

func text(key, value string) *commonpb.KeyValue {
	if len(value) > textLimit {
		value = value[:textLimit] + "…"
	}
	value = strings.ToValidUTF8(value, "\uFFFD") // other text cannot be encoded
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

func amount(key string, value float64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: value}}}
}

func boolean(key string, value bool) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: value}}}
}

// set sets attributes; an empty text is none.
func set(s *tracepb.Span, with ...*commonpb.KeyValue) {
	for _, kv := range with {
		if v, is := kv.Value.Value.(*commonpb.AnyValue_StringValue); is && v.StringValue == "" {
			continue
		}
		if i := slices.IndexFunc(s.Attributes, func(have *commonpb.KeyValue) bool { return have.Key == kv.Key }); i >= 0 {
			s.Attributes[i] = kv
			continue
		}
		s.Attributes = append(s.Attributes, kv)
	}
}

// addMissing adds an attribute unless its key is there already.
func addMissing(list []*commonpb.KeyValue, kv *commonpb.KeyValue) []*commonpb.KeyValue {
	if slices.ContainsFunc(list, func(have *commonpb.KeyValue) bool { return have.Key == kv.Key }) {
		return list
	}
	return append(list, kv)
}

// who are the attributes of the agent that an event is about.
func who(e journal.Event) []*commonpb.KeyValue {
	session := e.Session
	if strings.IndexFunc(session, func(r rune) bool { return !isID(r) }) >= 0 { // the agent could have written anything
		session = ""
	}
	return []*commonpb.KeyValue{
		text("ralph.agent", e.Agent), text("ralph.model", e.Model), text("ralph.sandbox", e.Sandbox), text("ralph.session", session),
	}
}

// isID reports the characters of which the sessions' ids of all agents consist.
func isID(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// spent are the attributes of what models have used.
func spent(u *agents.Usage) []*commonpb.KeyValue {
	if u == nil || *u == (agents.Usage{}) {
		return nil
	}
	return []*commonpb.KeyValue{
		number("ralph.tokens.input", u.Input), number("ralph.tokens.output", u.Output), number("ralph.tokens.cache_read", u.CacheRead),
		number("ralph.tokens.cache_write", u.CacheWrite), amount("ralph.cost_usd", u.CostUSD),
	}
}

// ended ends a span, not before it has begun.
func ended(s *tracepb.Span, at time.Time) *tracepb.Span {
	s.EndTimeUnixNano = max(nanos(at), s.StartTimeUnixNano)
	return s
}

func failed(why string) *tracepb.Status {
	return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: why}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) } //nolint:gosec // not negative
