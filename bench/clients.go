package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// The clients of W26/tls and W26/clients are a process of their own, which is this program again, so that the
// processors' time of the server's process is the server's alone:
//
//	the server's process ── clientsJob ──────▶ the clients' process: fills, opens the watches
//	                     ◀── clientsReport ───
//	                     ── clientsJob ──────▶ writes, until all watches have everything
//	                     ◀── clientsReport ───

// ClientCPU is the metric of the processors' time of the clients for one delivery, if they are
// not in the server's process.
const ClientCPU = "client cpu/delivery"

// clientsVariable is in the environment of a clients' process.
const clientsVariable = "WATCHMILL_BENCH_CLIENTS"

// clientsJob tells the clients what to do next.
type clientsJob struct {
	At     *Endpoint
	Params Params
}

// clientsReport is what the clients have done.
type clientsReport struct {
	Failed    string
	Result    Result
	Delivered int64
	Used      time.Duration // of the processors
}

// RunAsClients runs this process as the clients of a workload, if one has started it for that,
// and reports whether it has. A program that runs workloads calls it first.
func RunAsClients(ctx context.Context) bool {
	if os.Getenv(clientsVariable) == "" {
		return false
	}
	out := json.NewEncoder(os.Stdout)
	if err := clientsOf(ctx, json.NewDecoder(os.Stdin), out); err != nil {
		_ = out.Encode(clientsReport{Failed: err.Error()}) // the server's process may be gone
	}
	return true
}

// clientsOf carries out the two jobs of a server's process.
func clientsOf(ctx context.Context, in *json.Decoder, out *json.Encoder) error {
	var job clientsJob
	if err := in.Decode(&job); err != nil {
		return err
	}
	s, err := dialEndpoint(job.At)
	if err != nil {
		return err
	}
	defer s.closeClients()
	object := objects(job.Params.Objects)
	rev, err := fill(ctx, s, job.Params.Objects, object)
	if err != nil {
		return err
	}
	crowd := newCrowd(job.Params.Watchers, 1, newWriter(job.Params, object))
	defer crowd.end()
	if err := crowd.open(watching(ctx, s.watches(), rev, everything)); err != nil {
		return err
	}
	if err := out.Encode(clientsReport{}); err != nil {
		return err
	}
	if err := in.Decode(&job); err != nil {
		return err
	}
	before := processorTime()
	took, err := crowd.run(ctx, writerTo(s))
	if err != nil {
		return err
	}
	delivered, _, _ := crowd.delivered()
	return out.Encode(clientsReport{Result: crowd.result(took), Delivered: delivered, Used: processorTime() - before})
}

// servedToClients is served with the clients in a process of their own.
func servedToClients(ctx context.Context, c Contender, p Params) (Result, error) {
	return run(ctx, c, c.Custom, func(ctx context.Context, at *Endpoint) (Result, error) {
		clients, err := startClients(ctx)
		if err != nil {
			return nil, fmt.Errorf("start clients: %w", err)
		}
		result, err := clients.measure(clientsJob{at, p})
		if ended := clients.end(); err == nil {
			err = ended
		}
		return result, err
	})
}

// clientsProcess is the clients' process, as the server's has it.
type clientsProcess struct {
	child *exec.Cmd
	close func() error // of what it reads
	jobs  *json.Encoder
	done  *json.Decoder
}

// startClients starts this program again.
func startClients(ctx context.Context) (*clientsProcess, error) {
	if os.Getenv(clientsVariable) != "" {
		return nil, errors.New("this process is one of clients: the program does not call bench.RunAsClients first")
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, program)
	child.Env, child.Stderr = append(os.Environ(), clientsVariable+"=1"), os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &clientsProcess{child, in.Close, json.NewEncoder(in), json.NewDecoder(out)}, child.Start()
}

// measure has the clients prepare the job, and measures while they carry it out.
func (p *clientsProcess) measure(job clientsJob) (Result, error) {
	if _, err := p.do(job); err != nil {
		return nil, err
	}
	before := processorTime()
	report, err := p.do(job)
	if err != nil {
		return nil, err
	}
	used := processorTime() - before
	return append(report.Result, perDelivery(CPU, used, report.Delivered), perDelivery(ClientCPU, report.Used, report.Delivered)), nil
}

// do has the clients take the next step.
func (p *clientsProcess) do(job clientsJob) (report clientsReport, err error) {
	if err := p.jobs.Encode(job); err != nil {
		return report, err
	}
	if err := p.done.Decode(&report); err != nil {
		return report, fmt.Errorf("clients: %w", err)
	}
	if report.Failed != "" {
		return report, fmt.Errorf("clients: %s", report.Failed)
	}
	return report, nil
}

// end waits until the clients' process has ended.
func (p *clientsProcess) end() error {
	err := p.close()
	if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		err = nil
	}
	return errors.Join(err, p.child.Wait())
}
