import { spawnSync } from 'node:child_process'

/** Runs a benchmark's measurement on the disk as it is, and with 2 ms added to every synchronisation (by strace). */
export async function onBothDisks(program: string, measure: () => Promise<void>): Promise<void> {
  if (process.env.BENCH_CHILD) return measure()
  const child = { env: { ...process.env, BENCH_CHILD: '1' }, stdio: 'inherit' } as const
  console.log('The disk as it is')
  spawnSync(process.execPath, [program], child)
  if (spawnSync('strace', ['-V']).error !== undefined) {
    console.log('strace is not installed: no measurement with a slower disk')
    return
  }
  console.log('With 2 ms more for every synchronisation with the disk')
  const inject = ['-e', 'trace=fsync,fdatasync', '-e', 'inject=fsync,fdatasync:delay_exit=2000']
  spawnSync('strace', ['-f', '--seccomp-bpf', ...inject, '-o', '/dev/null', process.execPath, program], child)
}
