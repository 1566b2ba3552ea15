import { createApp } from 'vue';

import Chat from './chat.vue';

createApp(Chat).mount('#root');
