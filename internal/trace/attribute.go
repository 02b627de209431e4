package trace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// textLimit is the maximum size of an attribute's text in bytes.
const textLimit = 200

// attribute returns an attribute of a span or of the resource, or nil for an empty text.
func attribute(key string, value any) *commonpb.KeyValue {
	v := &commonpb.AnyValue{}
	switch value := value.(type) {
	case bool:
		v.Value = &commonpb.AnyValue_BoolValue{BoolValue: value}
	case int:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: int64(value)}
	case int64:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: value}
	case float64:
		v.Value = &commonpb.AnyValue_DoubleValue{DoubleValue: value}
	default:
		text := fmt.Sprint(value)
		if text == "" {
			return nil
		}
		if len(text) > textLimit {
			text = text[:textLimit] + "…"
		}
		v.Value = &commonpb.AnyValue_StringValue{StringValue: strings.ToValidUTF8(text, "\uFFFD")} // protobuf requires valid UTF-8
	}
	return &commonpb.KeyValue{Key: key, Value: v}
}

// set adds or replaces attributes, and ignores nil.
func set(s *tracepb.Span, with ...*commonpb.KeyValue) {
	for _, kv := range with {
		if kv != nil {
			s.Attributes = slices.DeleteFunc(s.Attributes, func(have *commonpb.KeyValue) bool { return have.Key == kv.Key })
			s.Attributes = append(s.Attributes, kv)
		}
	}
}

// agentAttributes returns attributes of the agent of an event.
func agentAttributes(e journal.Event) []*commonpb.KeyValue {
	session := e.Session
	if strings.IndexFunc(session, func(r rune) bool { return !isID(r) }) >= 0 { // the agent wrote it, so it could be anything
		session = ""
	}
	return []*commonpb.KeyValue{
		attribute("ralph.agent", e.Agent), attribute("ralph.model", e.Model),
		attribute("ralph.sandbox", e.Sandbox), attribute("ralph.session", session),
	}
}

// isID reports whether the character occurs in session ids of agents.
func isID(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// usageAttributes returns attributes of the usage.
func usageAttributes(u *agents.Usage) []*commonpb.KeyValue {
	if u == nil || *u == (agents.Usage{}) {
		return nil
	}
	list := []*commonpb.KeyValue{
		attribute("ralph.tokens.input",
			u.Input), attribute("ralph.tokens.output", u.Output), attribute("ralph.tokens.cache_read", u.CacheRead),
		attribute("ralph.tokens.cache_write", u.CacheWrite),
	}
	if u.CostUSD > 0 { // otherwise the cost is unknown
		list = append(list, attribute("ralph.cost_usd", u.CostUSD))
	}
	if u.Estimated > 0 {
		list = append(list, attribute("ralph.tokens.estimated", u.Estimated))
	}
	return list
}

// ended sets the end of a span, which is never before its start.
func ended(s *tracepb.Span, at time.Time) *tracepb.Span {
	s.EndTimeUnixNano = max(nanos(at), s.StartTimeUnixNano)
	return s
}

func failed(why string) *tracepb.Status {
	return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: why}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func nanos(t time.Time) uint64 { return uint64(max(0, t.UnixNano())) } //nolint:gosec // not negative
