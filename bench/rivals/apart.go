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

// Workloads that measure memory run in a process of their own, which is this command again:
//
//	rivals ──▶ rivals --apart W7 --as watchmill ──▶ the result, as JSON

// apart runs a workload once in a process of its own.
func (c *command) apart(ctx context.Context, w bench.Workload, contender string) (result bench.Result, err error) {
	program, name, err := c.program(contender)
	if err != nil {
		return nil, fmt.Errorf("run apart: %w", err)
	}
	args := []string{"--apart", w.ID, "--as", name}
	if c.Small {
		args = append(args, "--small")
	}
	child := exec.CommandContext(ctx, program, args...)
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s apart: %w", contender, err)
	}
	return result, nil
}

// program returns the program that has the contender, and the contender's name there.
func (c *command) program(contender string) (path, name string, err error) {
	if contender == earlier {
		return c.Earlier, bench.Watchmill().Name, nil
	}
	path, err = os.Executable()
	return path, contender, err
}

// alone is the body of such a process.
func alone(ctx context.Context, plan compare.Plan, contender string, out io.Writer) error {
	result, err := plan.Alone(ctx, plan.Workloads[0], contender)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
