package mockmodel

import "net/http"

// messages is the Anthropic Messages API.
type messages struct{}

func (messages) parse(body object) conversation {
	var c conversation
	for _, t := range list(body["tools"]) {
		t := asObject(t)
		c.tools = append(c.tools, tool{name: text(t["name"]), schema: asObject(t["input_schema"])})
	}
	var ms []message
	for _, m := range list(body["messages"]) {
		m := asObject(m)
		if text(m["role"]) != "user" {
			continue
		}
		var results []string
		for _, part := range list(m["content"]) {
			if part := asObject(part); text(part["type"]) == "tool_result" {
				results = append(results, text(part["tool_use_id"]))
			}
		}
		ms = append(ms, message{text: content(m["content"], "text"), results: results})
	}
	c.countTurns(ms)
	return c
}

func (messages) fault(f *Fault) object {
	return object{"type": "error", "error": object{"type": f.Type, "message": f.Message}, "request_id": "req_mock"}
}

func (api messages) reply(m *reply) {
	stop := "end_turn"
	if len(m.calls) > 0 {
		stop = "tool_use"
	}
	usage := object{"input_tokens": 1200, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 800}
	msg := object{
		"id": "msg_" + m.id, "type": "message", "role": "assistant", "model": m.conv.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage,
	}
	if !m.conv.stream {
		if m.cut(0) {
			return
		}
		usage["output_tokens"] = 42
		msg["content"], msg["stop_reason"] = api.blocks(m), stop
		writeJSON(m.w, http.StatusOK, msg)
		return
	}
	send := m.events()
	send("message_start", object{"message": msg})
	index := 0
	block := func(start object, deltas func(delta func(object)) bool) bool {
		send("content_block_start", object{"index": index, "content_block": start})
		ended := deltas(func(d object) { send("content_block_delta", object{"index": index, "delta": d}) })
		if !ended {
			send("content_block_stop", object{"index": index})
			index++
		}
		return ended
	}
	if m.step.Thinking != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, func(delta func(object)) bool {
			delta(object{"type": "thinking_delta", "thinking": m.step.Thinking})
			delta(object{"type": "signature_delta", "signature": "bW9jaw=="})
			return false
		})
	}
	if len(m.pieces) > 0 && block(object{"type": "text", "text": ""}, func(delta func(object)) bool {
		for i, p := range m.pieces {
			delta(object{"type": "text_delta", "text": p})
			if m.cut(i) {
				return true
			}
		}
		return false
	}) {
		return
	}
	for _, c := range m.calls {
		block(object{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": object{}}, func(delta func(object)) bool {
			in := string(encode(c.input))
			for _, part := range []string{in[:len(in)/2], in[len(in)/2:]} {
				delta(object{"type": "input_json_delta", "partial_json": part})
			}
			return false
		})
	}
	send("message_delta", object{"delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 42}})
	send("message_stop", object{})
}

// blocks returns the content of a message that is not streamed.
func (messages) blocks(m *reply) []any {
	blocks := []any{}
	if s := m.text(); s != "" {
		blocks = append(blocks, object{"type": "text", "text": s})
	}
	for _, c := range m.calls {
		blocks = append(blocks, object{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": c.input})
	}
	return blocks
}
