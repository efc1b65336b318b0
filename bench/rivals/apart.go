package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/bench/compare"
)

// What measures memory has a process to itself, which is this command again:
//
//	rivals ──▶ rivals --apart W7 --as watchmill ──▶ the result, as JSON

// apart runs a workload once in a process of its own.
func (c *command) apart(ctx context.Context, w bench.Workload, who string) (result bench.Result, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("run apart: %w", err)
	}
	args := []string{"--apart", w.ID, "--as", who}
	if c.Small {
		args = append(args, "--small")
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s apart: %w", who, err)
	}
	return result, nil
}

// alone is what such a process does.
func alone(ctx context.Context, plan compare.Plan, who string, out io.Writer) error {
	result, err := plan.Alone(ctx, plan.Workloads[0], who)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
