import { defineConfig } from 'vite'

/**
 * Builds the console into `dist/`, which is committed. `dist/index.html` becomes `/console`, and `dist/console/` has the
 * files below it. Addresses are relative, because a gateway may publish the service below a prefix.
 */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  publicDir: false,
  build: {
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    outDir: 'dist',
    assetsDir: 'console',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
})
