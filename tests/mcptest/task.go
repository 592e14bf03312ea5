package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agenticnexus/agenticnexus/internal/jsonrpc"
)

// Tasks are the capabilities of a client that takes tasks and is asked by forms.
const Tasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

// Task is the state of a task as tasks/get tells it.
type Task struct {
	ID            string `json:"taskId"`
	Status        string
	StatusMessage string
	TTLMs         int
	PollMs        int `json:"pollIntervalMs"`
	InputRequests map[string]Message
	Result, Error json.RawMessage
}

// Begin sends a request that becomes a task and returns its first state.
func (c *Client) Begin(ctx context.Context, method, params string) (t Task, err error) {
	r := c.Do(ctx, method, params)
	if r.Err == nil && jsonrpc.Text(jsonrpc.Get(r.Result, "resultType")) != "task" {
		r.Err = fmt.Errorf("%s: got %s%s, want a task", method, r.Result, r.Error)
	}
	if r.Err == nil {
		r.Err = json.Unmarshal(r.Result, &t)
	}
	return t, r.Err
}

// OfTask sends tasks/get, tasks/update or tasks/cancel. more are further members of the params, each with a comma
// before it.
func (c *Client) OfTask(ctx context.Context, method, id, more string) Reply {
	return c.Do(ctx, "tasks/"+method, `{"taskId":`+string(jsonrpc.StringID(id))+more+`}`)
}

// Await polls a task until it ends, and answers what it asks.
func Await(ctx context.Context, c *Client, id string) (t Task, err error) {
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		r := c.OfTask(ctx, "get", id, "")
		if r.Err != nil || r.Error != nil {
			return t, fmt.Errorf("tasks/get: %s %w", r.Error, r.Err)
		}
		t = Task{}
		if err := json.Unmarshal(r.Result, &t); err != nil {
			return t, err
		}
		switch t.Status {
		case "completed", "failed", "cancelled":
			return t, nil
		case "input_required":
			var answers []byte
			for key, m := range t.InputRequests {
				answers = jsonrpc.Set(answers, key, []byte(c.result(m)))
			}
			if r := c.OfTask(ctx, "update", id, `,"inputResponses":`+string(answers)); r.Err != nil || r.Error != nil {
				return t, fmt.Errorf("tasks/update: %s %w", r.Error, r.Err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}
