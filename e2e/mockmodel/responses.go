package mockmodel

import (
	"net/http"
	"strings"
)

// responses is the OpenAI Responses API.
type responses struct{}

func (api responses) parse(body object) conversation {
	var c conversation
	c.tools = api.tools(nil, list(body["tools"]))
	if s, ok := body["input"].(string); ok {
		c.countTurns([]message{{text: s}})
		return c
	}
	var ms []message
	for _, m := range list(body["input"]) {
		m := asObject(m)
		switch kind := text(m["type"]); {
		case kind == "additional_tools":
			c.tools = api.tools(c.tools, list(m["tools"]))
		case strings.HasSuffix(kind, "_output"):
			ms = append(ms, message{results: []string{text(m["call_id"])}})
		case (kind == "message" || kind == "") && text(m["role"]) == "user":
			ms = append(ms, message{text: content(m["content"], "input_text")})
		}
	}
	c.countTurns(ms)
	return c
}

// tools appends the described tools to have. A namespace contains further tools.
func (api responses) tools(have []tool, described []any) []tool {
	for _, t := range described {
		t := asObject(t)
		name := text(t["name"])
		switch text(t["type"]) {
		case "function":
			have = append(have, tool{name: name, schema: asObject(t["parameters"])})
		case "custom":
			have = append(have, tool{name: name, code: true})
		case "namespace":
			have = api.tools(have, list(t["tools"]))
		}
	}
	return have
}

func (responses) fault(f *Fault) object {
	return object{"error": object{"message": f.Message, "type": f.Type, "param": nil, "code": f.Type}}
}

func (api responses) reply(m *reply) {
	out := &output{reply: m}
	if !m.conv.stream {
		if m.cut(0) {
			return
		}
		if m.text() != "" {
			out.items = append(out.items, out.message("completed", m.text()))
		}
		for _, c := range m.calls {
			out.items = append(out.items, out.call(c, "completed"))
		}
		writeJSON(m.w, http.StatusOK, out.response("completed"))
		return
	}
	out.stream()
}

// output is a response under construction: its list of items.
type output struct {
	*reply
	items []any
	send  func(name string, data object)
}

// stream sends the response as events.
func (o *output) stream() {
	send, number := o.events(), 0
	o.send = func(name string, data object) {
		data["sequence_number"] = number
		number++
		send(name, data)
	}
	o.send("response.created", object{"response": o.response("in_progress")})
	o.send("response.in_progress", object{"response": o.response("in_progress")})
	if o.step.Thinking != "" {
		o.streamThinking()
	}
	if len(o.pieces) > 0 && o.streamText() {
		return
	}
	for _, c := range o.calls {
		o.streamCall(c)
	}
	o.send("response.completed", object{"response": o.response("completed")})
}

func (o *output) streamThinking() {
	at := len(o.items)
	id := "rs_" + o.id
	summary := object{"type": "summary_text", "text": o.step.Thinking}
	o.send("response.output_item.added", object{"output_index": at, "item": object{"id": id, "type": "reasoning", "summary": []any{}}})
	o.send("response.reasoning_summary_part.added", object{
		"item_id": id, "output_index": at, "summary_index": 0, "part": object{"type": "summary_text", "text": ""},
	})
	o.send("response.reasoning_summary_text.delta", object{
		"item_id": id, "output_index": at, "summary_index": 0, "delta": o.step.Thinking,
	})
	o.send("response.reasoning_summary_text.done", object{
		"item_id": id, "output_index": at, "summary_index": 0, "text": o.step.Thinking,
	})
	o.done(object{"id": id, "type": "reasoning", "summary": []any{summary}, "encrypted_content": "bW9jaw=="})
}

// streamText reports whether the step aborts the response within the text.
func (o *output) streamText() bool {
	at := len(o.items)
	id := "msg_" + o.id
	o.send("response.output_item.added", object{"output_index": at, "item": o.message("in_progress", "")})
	o.send("response.content_part.added", object{"item_id": id, "output_index": at, "content_index": 0, "part": textPart("")})
	for i, p := range o.pieces {
		o.send("response.output_text.delta", object{"item_id": id, "output_index": at, "content_index": 0, "delta": p})
		if o.cut(i) {
			return true
		}
	}
	o.send("response.output_text.done", object{"item_id": id, "output_index": at, "content_index": 0, "text": o.text()})
	o.send("response.content_part.done", object{"item_id": id, "output_index": at, "content_index": 0, "part": textPart(o.text())})
	o.done(o.message("completed", o.text()))
	return false
}

func (o *output) streamCall(c toolCall) {
	at := len(o.items)
	start, full := o.call(c, "in_progress"), o.call(c, "completed")
	field, event := "arguments", "response.function_call_arguments"
	if c.isCode() {
		field, event = "input", "response.custom_tool_call_input"
	}
	start[field] = ""
	o.send("response.output_item.added", object{"output_index": at, "item": start})
	o.send(event+".delta", object{"item_id": full["id"], "output_index": at, "delta": full[field]})
	o.send(event+".done", object{"item_id": full["id"], "output_index": at, field: full[field]})
	o.done(full)
}

// done completes the newest item.
func (o *output) done(item object) {
	o.send("response.output_item.done", object{"output_index": len(o.items), "item": item})
	o.items = append(o.items, item)
}

func (o *output) message(status, s string) object {
	parts := []any{}
	if s != "" {
		parts = append(parts, textPart(s))
	}
	return object{"id": "msg_" + o.id, "type": "message", "role": "assistant", "status": status, "content": parts}
}

func (o *output) call(c toolCall, status string) object {
	item := object{"call_id": "call_" + c.id, "name": c.name, "status": status}
	if c.isCode() {
		item["id"], item["type"], item["input"] = "ctc_"+c.id, "custom_tool_call", c.code
	} else {
		item["id"], item["type"], item["arguments"] = "fc_"+c.id, "function_call", string(encode(c.input))
	}
	return item
}

func (o *output) response(status string) object {
	items := o.items
	if items == nil {
		items = []any{}
	}
	r := object{
		"id": "resp_" + o.id, "object": "response", "created_at": 1790000000, "status": status, "model": o.conv.model,
		"output": items, "parallel_tool_calls": true, "tools": []any{}, "error": nil, "incomplete_details": nil,
	}
	if status == "completed" {
		r["usage"] = object{
			"input_tokens": 2000, "input_tokens_details": object{"cached_tokens": 800},
			"output_tokens": 42, "output_tokens_details": object{"reasoning_tokens": 7}, "total_tokens": 2042,
		}
	}
	return r
}

func textPart(s string) object {
	return object{"type": "output_text", "text": s, "annotations": []any{}}
}
